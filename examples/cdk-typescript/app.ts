// A stack in TypeScript that uses a scheduler which a Python app, or a template, has deployed with `resources=True`.
// Node runs this file as it is; in a project of your own, `cdk init` has made what compiles it.
import * as cdk from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";

/** What a scheduler's stack exports. stage: its name. */
class Scheduler {
  readonly resourcesArn: string;
  readonly apiId: string;

  constructor(stage: string) {
    this.resourcesArn = cdk.Fn.importValue(`Tickwheel-${stage}-Resources`);
    this.apiId = cdk.Fn.importValue(`Tickwheel-${stage}-ApiId`);
  }

  get endpoint(): string {
    return `https://${this.apiId}.execute-api.${cdk.Aws.REGION}.${cdk.Aws.URL_SUFFIX}`;
  }

  /** Let a role submit jobs of a tenant: IAM lets it call the routes, and a resource lets it act for the tenant. */
  grantSubmit(role: iam.IRole, tenant: string): void {
    const api = `arn:${cdk.Aws.PARTITION}:execute-api:${cdk.Aws.REGION}:${cdk.Aws.ACCOUNT_ID}:${this.apiId}/*`;
    const resources = ["POST/v1/jobs", "POST/v1/jobs:batch"].map((route) => `${api}/${route}`);
    role.addToPrincipalPolicy(new iam.PolicyStatement({ actions: ["execute-api:Invoke"], resources }));
    new cdk.CustomResource(role, `Tickwheel-${tenant}`, {
      resourceType: "Custom::TickwheelPrincipal",
      serviceToken: this.resourcesArn,
      serviceTimeout: cdk.Duration.minutes(10),
      properties: { Tenant: tenant, Principal: role.roleArn },
    });
  }
}

interface ScheduleProps {
  scheduler: Scheduler;
  tenant: string;
  scheduleId: string;
  /** What `PUT /v1/schedules/{id}` takes; tools make types of the API's OpenAPI document. */
  definition: { job: { target: string; [field: string]: unknown }; [field: string]: unknown };
}

class Schedule extends Construct {
  constructor(scope: Construct, id: string, props: ScheduleProps) {
    super(scope, id);
    new cdk.CustomResource(this, "Resource", {
      resourceType: "Custom::TickwheelSchedule",
      serviceToken: props.scheduler.resourcesArn,
      serviceTimeout: cdk.Duration.minutes(10),
      properties: {
        Tenant: props.tenant,
        ScheduleId: props.scheduleId,
        // As a text: CloudFormation makes texts of the numbers in an object.
        Definition: cdk.Stack.of(this).toJsonString(props.definition),
      },
    });
  }
}

const app = new cdk.App();
const stack = new cdk.Stack(app, "Invoices");
const scheduler = new Scheduler(app.node.tryGetContext("scheduler") ?? "prod");

const submitter = new lambda.Function(stack, "Submitter", {
  runtime: lambda.Runtime.NODEJS_22_X,
  handler: "index.handler",
  code: lambda.Code.fromInline("exports.handler = async () => process.env.TICKWHEEL_ENDPOINT;"),
  environment: { TICKWHEEL_ENDPOINT: scheduler.endpoint },
});
scheduler.grantSubmit(submitter.role!, "invoices");

new Schedule(stack, "Monthly", {
  scheduler,
  tenant: "invoices",
  scheduleId: "monthly",
  definition: { cron: "0 6 1 * *", max_runs: 12, job: { target: "https://example.com/invoices", retry: { attempts: 3 } } },
});
app.synth();

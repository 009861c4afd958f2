"""Upload what synthesised templates name: `python publish.py cdk.out`. It writes each address; those of templates are for `--template-url`."""

import json
import shutil
import sys
import tempfile
from pathlib import Path

import boto3


def publish(folder: Path) -> None:
    """Upload every file of the assemblies in a folder, folders as zips."""
    s3, places = boto3.client("s3"), {}
    for assembly in sorted(folder.glob("*.assets.json")):
        for file in json.loads(assembly.read_text())["files"].values():
            for place in file["destinations"].values():
                places[place["bucketName"], place["objectKey"]] = file["source"]
    with tempfile.TemporaryDirectory() as zips:
        for (bucket, key), source in places.items():
            path = str(folder / source["path"])
            if source["packaging"] == "zip":
                path = shutil.make_archive(f"{zips}/{Path(key).stem}", "zip", path)
            s3.upload_file(path, bucket, key)
            sys.stdout.write(f"https://{bucket}.s3.amazonaws.com/{key}\n")


if __name__ == "__main__":
    publish(Path(sys.argv[1]))

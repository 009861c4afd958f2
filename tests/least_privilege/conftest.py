"""The templates of the stages, as the tests of the infrastructure have them."""

from tests.infra.conftest import any_stage, dev, templates, templates_of

__all__ = ["any_stage", "dev", "templates", "templates_of"]

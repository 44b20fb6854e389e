from tests.integrity.erasing import erasures, storage  # noqa: F401 (for the tests of erasures)

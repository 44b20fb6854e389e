"""The faces of LCM. Each renders one catalogue of operations and owns no logic: it translates in, makes one call, and
translates out."""

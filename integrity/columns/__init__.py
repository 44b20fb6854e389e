"""What protects each column of the database.

Pure data. Tables of other rooms and of third parties are only named here.
"""

from integrity.columns import history_tables, working_tables
from integrity.columns.declaration import ROW_SEAL, SITE_ROW_SEAL, Column, Protection, Table

__all__ = ["ROW_SEAL", "SITE_ROW_SEAL", "TABLES", "Column", "Protection", "Table"]

TABLES: dict[str, Table] = {table.name: table for table in (*history_tables.TABLES, *working_tables.TABLES)}

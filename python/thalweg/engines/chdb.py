"""ClickHouse within this process (chdb), as a backend for Ibis.

Ibis's own ClickHouse backend talks to a server. This one uses the same compiler and passes the SQL to chdb, so
the SQL is the same as on a server.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import chdb.session
import ibis.expr.datatypes as dt
import ibis.expr.operations as ops
import ibis.expr.schema as sch
import ibis.expr.types as ir
import pandas as pd
import pyarrow as pa
import sqlglot as sg
from ibis.backends import SupportsTempTables
from ibis.backends.sql import SQLBackend, compilers
from ibis.formats.pyarrow import PyArrowData, PyArrowSchema

SETTINGS = (
    "join_use_nulls = 1",
    "use_hive_partitioning = 0",
    "output_format_arrow_string_as_string = 1",
    "output_format_arrow_compression_method = 'none'",
    "schema_inference_make_columns_nullable = 0",
    "use_variant_as_common_type = 0",
    "aggregate_functions_null_for_empty = 0",
)
"""Settings for standard SQL semantics in ClickHouse: outer joins give nulls, and columns of files are not nullable."""


class Backend(SupportsTempTables, SQLBackend):
    """An Ibis backend for a chdb session."""

    name = "clickhouse"
    compiler = compilers.clickhouse.compiler
    supports_temporary_tables = False

    def do_connect(self, path: str) -> None:
        """Opens a session whose tables are kept in the directory `path`."""
        self.con: Any = chdb.session.Session(path)
        self.con.query("CREATE DATABASE IF NOT EXISTS thalweg ENGINE = Atomic")
        self.con.query("USE thalweg")
        for setting in SETTINGS:
            self.con.query(f"SET {setting}")

    def disconnect(self) -> None:
        """Closes the session."""
        self.con.close()

    @property
    def version(self) -> str:
        """Returns ClickHouse's version."""
        return str(self.con.query("SELECT version()", "TSVRaw")).strip()

    def raw_sql(self, query: Any, **_: Any) -> Any:
        """Runs a statement."""
        return self.con.query(query if isinstance(query, str) else query.sql(self.dialect))

    @contextlib.contextmanager
    def _safe_raw_sql(self, query: Any, **_: Any) -> Iterator[Any]:
        yield self.raw_sql(query)

    def list_tables(self, *, like: str | None = None, database: Any = None) -> list[str]:
        """Returns the names of tables and views."""
        return list(self._filter_with_like(self._column("SHOW TABLES"), like))

    def get_schema(self, name: str, *, catalog: str | None = None, database: str | None = None) -> sch.Schema:
        """Returns the columns of a table and their types."""
        return self._described(f"DESCRIBE TABLE {sg.to_identifier(name, quoted=True).sql(self.dialect)}")

    def _get_schema_using_query(self, query: str) -> sch.Schema:
        return self._described(f"DESCRIBE TABLE ({query})")

    def _described(self, statement: str) -> sch.Schema:
        rows = self._arrow(statement).to_pylist()
        return sch.Schema({row["name"]: self._type(row["type"]) for row in rows})

    def _type(self, name: str) -> dt.DataType:
        # Ibis unites columns of equal types only, and counts what may be null as part of the type.
        return self.compiler.type_mapper.from_string(name).copy(nullable=True)

    def create_table(self, name: str, /, obj: ir.Table, **_: Any) -> ir.Table:
        """Computes a table and stores it on disk."""
        self.raw_sql(f"CREATE TABLE {name} ENGINE = MergeTree ORDER BY tuple() AS {self.compile(obj)}")
        return self.table(name)

    def to_pyarrow(self, expr: ir.Expr, /, **_: Any) -> pa.Table:
        """Computes a table."""
        table = expr.as_table()
        answer = self._arrow(self.compile(table))
        return PyArrowData.convert_table(answer, table.schema())

    def to_pyarrow_batches(self, expr: ir.Expr, /, *, chunk_size: int = 1_000_000, **_: Any) -> pa.RecordBatchReader:
        """Computes a table, a batch of rows at a time."""
        table = expr.as_table()
        schema = PyArrowSchema.from_ibis(table.schema())
        batches = self.to_pyarrow(expr).cast(schema).to_batches(chunk_size)
        return pa.RecordBatchReader.from_batches(schema, batches)

    def execute(self, expr: ir.Expr, /, **_: Any) -> Any:
        """Computes an expression as a pandas object."""
        return expr.__pandas_result__(self.to_pyarrow(expr).to_pandas())

    def _register_in_memory_table(self, op: ops.InMemoryTable) -> None:
        raise NotImplementedError("chdb: pass rows with Engine.from_arrow")

    def _arrow(self, query: str) -> pa.Table:
        answer = self.con.query(query, "Arrow").bytes()
        return pa.ipc.open_file(pa.py_buffer(answer)).read_all() if answer else pa.table({})

    def _column(self, query: str) -> list[str]:
        return [next(iter(row.values())) for row in self._arrow(query).to_pylist()]

    def _fetch_from_cursor(self, cursor: Any, schema: sch.Schema) -> pd.DataFrame:
        raise NotImplementedError("chdb has no cursors")

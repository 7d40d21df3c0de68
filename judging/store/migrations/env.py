"""Alembic's way in: it migrates on the connection that `judging.store.workspace.migrate` hands over."""

from alembic import context

from tracejury.judging.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    include_object=lambda _object, name, kind, _reflected, _compare: not (kind == "table" and "_fts" in name),
    render_as_batch=True,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()

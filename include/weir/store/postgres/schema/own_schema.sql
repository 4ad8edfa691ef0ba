--- Refuses a schema that a stranger made: what is in it would be executed with weir's rights. The
--- owner is who asks, a role that they are a member of, the database's owner, or a superuser. The
--- first statement pins the names of this one and of what follows in the transaction.

SET LOCAL search_path = pg_catalog, pg_temp;
DO $$
DECLARE
  r name;
BEGIN
  SELECT o.rolname INTO r FROM pg_namespace n JOIN pg_roles o ON o.oid = n.nspowner
    JOIN pg_database d ON d.datname = current_database()
    JOIN pg_roles me ON me.rolname = current_user
    WHERE n.nspname = btrim('weir', '"') AND NOT (o.oid IN (me.oid, d.datdba) OR o.rolsuper
      OR NOT me.rolsuper AND pg_has_role(o.oid, 'USAGE'));
  IF FOUND THEN
    RAISE SQLSTATE 'WEIR1' USING MESSAGE =
      format('weir: the schema %I belongs to the role %I', btrim('weir', '"'), r);
  END IF;
END $$;

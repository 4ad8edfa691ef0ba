--- Moves the ended jobs of version 4 to their tables. These get the owner of the jobs' table, and the
--- rights that roles have to it.

INSERT INTO weir.dead_letters SELECT * FROM weir.dead_4;
INSERT INTO weir.ended SELECT * FROM weir.ended_4;
DROP TABLE weir.dead_4, weir.ended_4;
DO $$
DECLARE
  g record;
BEGIN
  SELECT c.relowner::regrole AS tables INTO g FROM pg_class c WHERE c.oid = 'weir.jobs'::regclass;
  EXECUTE 'ALTER TABLE weir.dead_letters OWNER TO ' || g.tables;
  EXECUTE 'ALTER TABLE weir.ended OWNER TO ' || g.tables;
  FOR g IN SELECT a.privilege_type AS what, a.grantee, a.is_grantable
      FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'weir.jobs'::regclass LOOP
    EXECUTE 'GRANT ' || g.what || ' ON weir.dead_letters, weir.ended TO '
      || CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END
      || CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END;
  END LOOP;
END $$;

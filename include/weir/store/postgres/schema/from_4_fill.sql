--- Moves the ended jobs of version 4 to their tables. These get the owner of the jobs' table, and the
--- rights that roles have to it.

INSERT INTO weir.dead_letters SELECT * FROM weir.dead_4;
INSERT INTO weir.ended SELECT * FROM weir.ended_4;
DROP TABLE weir.dead_4, weir.ended_4;
DO $$
DECLARE
  g record;
BEGIN
  IF (SELECT p.proacl FROM pg_proc p WHERE p.oid = 'weir.end_job'::regproc) IS NOT NULL THEN
    REVOKE ALL ON FUNCTION weir.give_way FROM PUBLIC;
  END IF;
  SELECT c.relowner::regrole AS tables, p.proowner::regrole AS functions INTO g
    FROM pg_class c, pg_proc p WHERE c.oid = 'weir.jobs'::regclass AND p.oid = 'weir.end_job'::regproc;
  EXECUTE 'ALTER TABLE weir.dead_letters OWNER TO ' || g.tables;
  EXECUTE 'ALTER TABLE weir.ended OWNER TO ' || g.tables;
  EXECUTE 'ALTER FUNCTION weir.give_way OWNER TO ' || g.functions;
  FOR g IN
    SELECT a.privilege_type || ' ON weir.dead_letters, weir.ended' AS what, a.grantee, a.is_grantable
      FROM pg_class c, aclexplode(c.relacl) a WHERE c.oid = 'weir.jobs'::regclass
    UNION ALL
    SELECT a.privilege_type || ' ON FUNCTION weir.give_way', a.grantee, a.is_grantable
      FROM pg_proc p, aclexplode(p.proacl) a WHERE p.oid = 'weir.end_job'::regproc
  LOOP
    EXECUTE 'GRANT ' || g.what || ' TO '
      || CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END
      || CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END;
  END LOOP;
END $$;

--- Functions that are not of version 4 get the owner of one that is, and the rights that roles have
--- to it.

DO $$
DECLARE
  old pg_proc;
  f regprocedure;
  g record;
BEGIN
  SELECT p.* INTO old FROM pg_proc p WHERE p.oid = 'weir.end_job'::regproc;
  FOR f IN SELECT p.oid FROM pg_proc p WHERE p.pronamespace = old.pronamespace
      AND p.proname IN ('give_way', 'lock_keys', 'possessor', 'take_key') LOOP
    IF old.proacl IS NOT NULL THEN
      EXECUTE 'REVOKE ALL ON FUNCTION ' || f || ' FROM PUBLIC';
    END IF;
    EXECUTE 'ALTER FUNCTION ' || f || ' OWNER TO ' || old.proowner::regrole;
    FOR g IN SELECT a.grantee, a.is_grantable FROM aclexplode(old.proacl) a LOOP
      EXECUTE 'GRANT EXECUTE ON FUNCTION ' || f || ' TO '
        || CASE g.grantee WHEN 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END
        || CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END;
    END LOOP;
  END LOOP;
END $$;

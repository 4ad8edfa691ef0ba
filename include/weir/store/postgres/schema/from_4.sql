--- From version 4, where what had ended was in the jobs' table, too. What comes after it in the step
--- makes the tables for that, fills them, and replaces the functions: who calls one meanwhile waits,
--- and then calls the new one.

LOCK TABLE weir.jobs;
CREATE UNLOGGED TABLE weir.dead_4 AS
  SELECT j.*, j.death AS number FROM weir.jobs j WHERE j.death IS NOT NULL;
CREATE UNLOGGED TABLE weir.ended_4 AS
  SELECT j.*, j.kept AS until FROM weir.jobs j WHERE j.death IS NULL AND j.kept IS NOT NULL;
DELETE FROM weir.jobs WHERE death IS NOT NULL OR kept IS NOT NULL;
UPDATE weir.jobs SET vesting = 0 WHERE vesting IS NULL;
UPDATE weir.dead_4 SET vesting = 0;
UPDATE weir.ended_4 SET vesting = 0;
ALTER TABLE weir.dead_4 DROP death, DROP kept;
ALTER TABLE weir.ended_4 DROP death, DROP kept;
DROP INDEX weir.jobs_order;
-- An enqueue that was under way, and waited, does not know where to look for ids that are taken. It
-- is refused: it says no state.
ALTER TABLE weir.jobs DROP death, DROP kept, ALTER vesting SET NOT NULL, ALTER state DROP DEFAULT;
CREATE INDEX jobs_order ON weir.jobs ((queue || ''), priority, vesting, id);

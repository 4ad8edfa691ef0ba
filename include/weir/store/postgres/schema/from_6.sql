--- From version 6, where the end of a job, or of its lease, removed the rows of its unique keys, and
--- guards kept others from a key. A step that is under way, and waits, cannot take a key any more: it
--- finds no such function, or no such index, and is refused.

-- First: all others use used_keys, too, and would wait with it for steps of unique keys.
LOCK TABLE weir.keys;
ALTER TABLE weir.used_keys ADD due bigint;
CREATE INDEX used_keys_due ON weir.used_keys (due) WHERE due IS NOT NULL;
DROP INDEX ~.keys_until;
ALTER TABLE weir.keys DROP CONSTRAINT keys_pkey, ALTER owner DROP NOT NULL, ADD fence bigint,
  ADD uses bigint NOT NULL DEFAULT 0, ADD number bigint NOT NULL DEFAULT 0, SET (fillfactor = 70);
CREATE INDEX keys_last --\
  ON weir.keys ((int4send(octet_length(queue)) || queue || key), run, number);
UPDATE weir.keys w SET fence = j.fence FROM weir.jobs j
  WHERE w.run AND j.queue = w.queue AND j.id = w.owner;
INSERT INTO weir.used_keys SELECT 5 + w.run::integer, weir.dequeue_key(w.queue, w.key), 0
  FROM weir.keys w;
DROP FUNCTION weir.take_key;
DROP FUNCTION IF EXISTS ~.free_run, ~.leaves_run;

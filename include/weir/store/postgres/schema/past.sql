--- Jobs that have ended, each with what it was. A job is in one of these or in the jobs' table, and
--- in one only: who moves it does so in one transaction, and who adds a job looks here after it has
--- the id (see taken). What looks in several does so in one statement, so from one snapshot.

-- Dead letters, in the order in which they died.
CREATE TABLE weir.dead_letters (
  LIKE weir.jobs INCLUDING DEFAULTS,
  death     bigint NOT NULL,
  PRIMARY KEY (queue, id)
) WITH (weir.hot_table);
CREATE INDEX dead_letters_order ON weir.dead_letters ((queue || ''), death);  -- see permits

-- Records that are kept until their retention is over, and the ids of their jobs with them. Then
-- they are removed in steps (see tidy).
CREATE TABLE weir.ended (
  LIKE weir.jobs INCLUDING DEFAULTS,
  kept      bigint NOT NULL,
  PRIMARY KEY (queue, id)
) WITH (weir.ended_table);
CREATE INDEX ended_kept ON weir.ended ((kept + 0));  -- see permits

import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const skillMigrations: readonly Migration[] = [
  {
    id: '027-skills',
    up: [
      // The owner of a shared skill is empty: no agent has such an id.
      `CREATE TABLE skill_provenance (
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        digest TEXT NOT NULL,
        source TEXT NOT NULL,
        tier TEXT NOT NULL,
        verdict TEXT NOT NULL,
        forced INTEGER NOT NULL,
        url TEXT,
        principal_id TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (owner, name)
      ) WITHOUT ROWID`,
      // By agent, also for shared skills: what helps one may mislead another.
      `CREATE TABLE skill_stat (
        agent_id TEXT NOT NULL,
        owner TEXT NOT NULL,
        name TEXT NOT NULL,
        uses INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        streak INTEGER NOT NULL,
        standing TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        PRIMARY KEY (agent_id, owner, name)
      ) WITHOUT ROWID`,
    ],
  },
];

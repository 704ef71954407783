import type {} from './tables.ts';
import type { Migration } from '../../../kernel/db/operation.ts';

export const evaluationMigrations: readonly Migration[] = [
  {
    id: '197-evaluations',
    up: [
      `CREATE TABLE eval_run (
        id TEXT PRIMARY KEY,
        name TEXT,
        state TEXT NOT NULL,
        reason TEXT,
        principal_id TEXT NOT NULL,
        variants_json TEXT NOT NULL,
        cases_json TEXT NOT NULL,
        case_count INTEGER NOT NULL,
        budget_nano INTEGER,
        created_at_ms INTEGER NOT NULL,
        ended_at_ms INTEGER,
        boot_id TEXT NOT NULL
      )`,
      `CREATE INDEX eval_run_by_time ON eval_run (created_at_ms)`,
      `CREATE TABLE eval_result (
        eval_id TEXT NOT NULL REFERENCES eval_run (id) ON DELETE CASCADE,
        case_no INTEGER NOT NULL,
        variant_no INTEGER NOT NULL,
        outcome TEXT NOT NULL,
        cost_nano INTEGER,
        judge_nano INTEGER NOT NULL,
        latency_ms INTEGER NOT NULL,
        detail_json TEXT NOT NULL,
        PRIMARY KEY (eval_id, case_no, variant_no)
      )`,
    ],
  },
];

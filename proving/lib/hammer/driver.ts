import { AppError } from '../../../packages/server/src/kernel/app-error.ts';
import type { AuditRow } from '../../../packages/server/src/kernel/db/audit.ts';
import type { Db } from '../../../packages/server/src/kernel/db/db.ts';
import type { Operation } from '../../../packages/server/src/kernel/db/operation.ts';

/** Which of the two processes. */
export type Side = 0 | 1;

/** What became of one write. */
export type Outcome<Output = unknown> = { readonly value: Output } | { readonly code: string; readonly message: string };

/** Reads rows with plain SQL that both engines know. */
export type Look = (sql: string) => Promise<readonly Readonly<Record<string, unknown>>[]>;

/** Code of an error that no caller should see. */
const unknownCode = 'unexpected';

/**
 * Drives some operations from two processes against the same rows. The processes run `run` at the same time with the scene that `prepare`
 * has made, which travels between processes; `check` returns what is wrong with the rows afterwards.
 */
export interface Driver<Scene = never, Result = never> {
  readonly name: string;
  prepare(db: Db, names: Names): Promise<Scene>;
  run(writer: Writer, scene: Scene, side: Side): Promise<Result>;
  check(look: Look, scene: Scene, results: readonly [Result, Result]): Promise<readonly string[]> | readonly string[];
}

/** Makes names and rows that no other round has. */
export interface Names {
  readonly round: string;
  id(prefix: string, index?: number | string): string;
  ref(index?: number): string;
  audit(index?: number | string): AuditRow;
}

/** Writes of one process. An error that no caller may get is kept for the report. */
export interface Writer {
  readonly side: Side;
  write<Input, Output>(operation: Operation<Input, Output>, input: Input, allowed?: readonly string[]): Promise<Outcome<Output>>;
  read<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output>;
  telemetry<Input, Output>(operation: Operation<Input, Output>, input: Input): Promise<Outcome<Output>>;
  /** The tasks at the same time, in a different order each time. */
  all<Result>(tasks: readonly (() => Promise<Result>)[]): Promise<readonly Result[]>;
  /** The same for writes whose results do not matter. */
  race(tasks: readonly (() => Promise<unknown>)[]): Promise<void>;
  /** Adds a finding. */
  wrong(what: string): void;
}

export const atMs = Date.UTC(2026, 8, 21, 12);
export const agentId = 'default';
export const principalId = 'token:root';
/** The daemon that owns what has no fence; both processes write for it. */
export const liveBoot = 'boot-live';
/** A second one, for what belongs to one of two daemons. */
export const otherBoot = 'boot-other';

export function namesOf(round: string): Names {
  const id = (prefix: string, index: number | string = 0) => `${prefix}_${round}-${index}`;
  return {
    round,
    id,
    ref: (index = 0) => `cv_${`${round}-${index}`.padStart(43, '0')}`,
    audit: (index = 0) => ({
      id: id('au', index),
      atMs,
      principalId,
      action: 'hammer',
      classification: 'mutate',
      outcome: 'success',
      target: round,
      traceId: '',
    }),
  };
}

export function toOutcome(error: unknown): { readonly code: string; readonly message: string } {
  return { code: error instanceof AppError ? error.code : unknownCode, message: error instanceof Error ? error.message : String(error) };
}

export const valueOf = <Output>(outcome: Outcome<Output>): Output | undefined => ('value' in outcome ? outcome.value : undefined);

/** How many of the outcomes are as asked. */
export const count = <Output>(outcomes: readonly Outcome<Output>[], is: (value: Output) => boolean): number =>
  outcomes.filter((outcome) => 'value' in outcome && is(outcome.value)).length;

/** A finding when a number is not the expected one. */
export const differs = (what: string, found: unknown, expected: unknown): readonly string[] =>
  Number(found) === Number(expected) ? [] : [`${what}: ${String(found)} instead of ${String(expected)}`];

/** A driver whose processes write the same inputs at the same time. */
export function driver<Scene, Result>(made: Driver<Scene, Result>): Driver {
  return made as unknown as Driver;
}

export const quote = (text: string) => `'${text.replaceAll("'", "''")}'`;

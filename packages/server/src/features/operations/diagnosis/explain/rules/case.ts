import type { RootCauseCode } from '@gatehouse/contract';
import type { Material } from '../material.ts';
import type { StoredRecord, StoredStep } from '../../records.ts';

/** A step with the record that it belongs to. */
export interface CaseStep {
  readonly step: StoredStep;
  readonly record: StoredRecord;
}

/** The execution as the rules read it. */
export interface Case extends Pick<Material, 'rows' | 'focus'> {
  readonly records: readonly StoredRecord[];
  /** All steps, in the order of records and steps. */
  readonly steps: readonly CaseStep[];
  readonly tools: readonly CaseStep[];
  /** Whether the explained turn did its work without anything to complain of. */
  readonly isFine: boolean;
}

/** What a rule found: what its advice is about. */
export interface Match {
  /** A tool, a model, a server, or an id. */
  readonly subject?: string | undefined;
  readonly count?: number;
  /** A run or a record below the explained turn, where it happened there. */
  readonly where?: string | undefined;
}

export interface Cause extends Match {
  readonly code: RootCauseCode;
}

export interface Rule {
  readonly code: RootCauseCode;
  readonly find: (about: Case) => Match | undefined;
}

export function toCase({ execution, focus, rows }: Pick<Material, 'execution' | 'focus' | 'rows'>): Case {
  const steps = execution.flatMap((record) => record.steps.map((step) => ({ step, record })));
  return {
    focus,
    rows,
    records: execution,
    steps,
    tools: steps.filter(({ step }) => step.kind === 'tool'),
    isFine: focus?.outcome === 'ok',
  };
}

import { useCallback, useMemo, useState } from 'react';
import type { ConfigChange } from '../../data/config-changes.ts';
import type { FieldErrors } from '../../data/field-errors.ts';
import { createStore } from '../../data/store.ts';
import { applyChanges, type Change, changesBetween } from './changes.ts';
import type { SettingForm } from './form.ts';
import { isRecord, isSame, pathText, valueAt, withoutValueAt, withValueAt } from './paths.ts';
import type { Lookup } from './schema.ts';

type Document = Readonly<Record<string, unknown>>;

/** A document as it is stored. */
export interface Stored {
  readonly digest: string;
  readonly written: Document;
  readonly restartNeeded: readonly string[];
}

/** A configuration that is being changed. */
export interface Draft {
  /** What config.yaml says, and its digest. */
  readonly stored: Document;
  readonly digest: string;
  readonly document: Document;
  readonly changes: readonly Change[];
  /** What is wrong with texts that are not valid values, by the id of their key. */
  readonly problems: FieldErrors;
  /** What others changed while this draft had changes: these are kept. */
  readonly meanwhile: readonly ConfigChange[];
  readonly dismissMeanwhile: () => void;
  readonly discard: () => void;
  readonly form: SettingForm;
}

interface State {
  readonly stored: Document;
  readonly digest: string;
  readonly document: Document;
  readonly problems: FieldErrors;
  readonly meanwhile: readonly ConfigChange[];
}

const none: FieldErrors = new Map();

/** Holds the changes of a configuration, and moves them onto a newer one as soon as it is loaded. */
export function useDraft(config: Stored, lookup: Lookup, models: readonly string[]): Draft {
  const [state, setState] = useState<State>(() => begin(config));
  const current = state.digest === config.digest ? state : rebase(state, config);
  // During the render, so that no frame shows the old values as stored.
  if (current !== state) setState(current);

  const edit = useCallback((next: (before: State) => Partial<State>) => setState((before) => ({ ...before, ...next(before) })), []);
  const waiting = useMemo(() => new Set(config.restartNeeded), [config.restartNeeded]);
  const opened = useState(() => createStore<ReadonlySet<string>>(new Set()))[0];
  const form = useMemo(
    (): SettingForm => ({
      lookup,
      opened,
      waiting,
      models,
      set: ({ id, path, keep }, value) =>
        edit(({ document, stored, problems }) => ({
          document: toDocument(value === undefined ? withoutValueAt(document, path, stored, keep) : withValueAt(document, path, value)),
          problems: without(problems, id),
        })),
      report: (id, problem) =>
        edit(({ problems }) => ({ problems: problem === undefined ? without(problems, id) : new Map([...problems, [id, problem]]) })),
    }),
    [lookup, opened, waiting, models, edit],
  );
  const { stored, document } = current;
  const changes = useMemo(() => changesBetween(stored, document), [stored, document]);
  return {
    ...current,
    changes,
    dismissMeanwhile: () => edit(() => ({ meanwhile: [] })),
    discard: () => edit(({ stored: original }) => ({ document: original, problems: none, meanwhile: [] })),
    form,
  };
}

function begin({ written, digest }: Stored): State {
  return { stored: written, digest, document: written, problems: none, meanwhile: [] };
}

function rebase(state: State, config: Stored): State {
  const document = toDocument(applyChanges(config.written, changesBetween(state.stored, state.document)));
  // A save of these changes themselves ends here.
  if (changesBetween(config.written, document).length === 0 && state.problems.size === 0) return begin(config);
  const theirs = changesBetween(state.stored, config.written).filter(({ path, value }) => !isSame(valueAt(state.document, path), value ?? undefined));
  return {
    stored: config.written,
    digest: config.digest,
    document,
    problems: state.problems,
    meanwhile:
      theirs.length === 0
        ? state.meanwhile
        : theirs.map(({ path }) => ({ path: pathText(path), before: valueAt(state.stored, path), after: valueAt(config.written, path) })),
  };
}

function toDocument(value: unknown): Document {
  return isRecord(value) ? value : {};
}

function without(problems: FieldErrors, id: string): FieldErrors {
  if (!problems.has(id)) return problems;
  return new Map([...problems].filter(([one]) => one !== id));
}

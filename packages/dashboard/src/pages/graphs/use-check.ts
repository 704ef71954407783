import type { Result } from '@gatehouse/contract';
import { useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { fieldErrors } from '../../data/field-errors.ts';
import { definitionOf, type GraphDraft } from './draft.ts';
import { type Checked, sortErrors } from './problems.ts';

type Defined = Result<'graph.define'>;

/** The gateway's validation of the graph in the form. */
export interface Check {
  readonly checked: Checked;
  readonly warnings: Defined['warnings'];
  /** Undefined while the graph can't run. */
  readonly defined: Defined | undefined;
  /** A failure of the validation itself, for example when the gateway does not respond. */
  readonly failure: unknown;
}

const settleMs = 700;
const none: Check = { checked: { nodes: new Map(), graph: new Map() }, warnings: [], defined: undefined, failure: undefined };

/** Validates a moment after the last change; the earlier result stays until the new one arrives. */
export function useCheck(draft: GraphDraft): Check {
  const { client } = useSession();
  const [check, setCheck] = useState(none);
  useEffect(() => {
    const abort = new AbortController();
    const settle = async (): Promise<Check> => {
      if (draft.nodes.length === 0) return none;
      try {
        const defined = await client.call('graph.define', definitionOf(draft), { signal: abort.signal });
        return { ...none, warnings: defined.warnings, defined };
      } catch (error) {
        const errors = fieldErrors(error);
        return errors.size === 0 ? { ...none, failure: error } : { ...none, checked: sortErrors(errors) };
      }
    };
    const timer = setTimeout(() => {
      void settle().then((next) => {
        if (!abort.signal.aborted) setCheck(next);
      });
    }, settleMs);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [client, draft]);
  return check;
}

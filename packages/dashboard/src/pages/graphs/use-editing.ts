import { t } from '../../language.ts';
import { useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { navigate, useLeaveGuard } from '../../router.ts';
import { definitionOf, type GraphDraft, withNode, withoutNode } from './draft.ts';

export interface Editing {
  readonly draft: GraphDraft;
  readonly isUnsaved: boolean;
  /** Key of the selected node; undefined for the settings of the graph. */
  readonly chosen: string | undefined;
  readonly choose: (key: string | undefined) => void;
  readonly change: (next: GraphDraft) => void;
  /** Adds a node after the selected one, and selects it. */
  readonly add: () => void;
  readonly remove: (key: string) => void;
  readonly save: { readonly busy: boolean; readonly error: unknown; readonly outcome: string | undefined; readonly start: () => void };
}

/** Keeps a graph that is being edited, and saves it under `id` or as a new one. */
export function useEditing(id: string | undefined, opened: GraphDraft): Editing {
  const { client, defaultAgentId } = useSession();
  const [draft, setDraft] = useState(opened);
  const [saved, setSaved] = useState(opened);
  const [chosen, setChosen] = useState<string>();
  const [outcome, setOutcome] = useState<string>();
  const [madeId, setMadeId] = useState<string>();
  const { busy, error, run } = useAction();
  const isUnsaved = draft !== saved;
  useLeaveGuard(isUnsaved, t('The graph has unsaved changes. Leave anyway?'));
  // After saving, a new graph moves to the address of the saved one, once the guard sees no unsaved changes.
  useEffect(() => {
    if (madeId !== undefined && !isUnsaved) navigate(`/graphs/edit/${madeId}`, { replace: true });
  }, [madeId, isUnsaved]);

  const change = (next: GraphDraft): void => {
    setDraft(next);
    setOutcome(undefined);
  };
  const save = async (): Promise<void> => {
    const { nodes, settings } = definitionOf(draft);
    const kept = await client.call('graph.save', { label: draft.label.trim(), nodes, settings, id: id ?? madeId });
    setSaved(draft);
    setOutcome(t('Saved {label}.', { label: draft.label.trim() }));
    if (id === undefined) setMadeId(kept.id);
  };
  return {
    draft,
    isUnsaved,
    chosen,
    choose: setChosen,
    change,
    add() {
      const made = withNode(draft, defaultAgentId, chosen);
      change(made.draft);
      setChosen(made.key);
    },
    remove(key) {
      change(withoutNode(draft, key));
      setChosen(undefined);
    },
    save: { busy, error, outcome, start: () => run(save) },
  };
}

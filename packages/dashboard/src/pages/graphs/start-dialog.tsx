import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { type FieldErrors, fieldErrors } from '../../data/field-errors.ts';
import { navigate } from '../../router.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { DraftField } from '../../ui/draft-field.tsx';
import { Button, Failure, Notice } from '../../ui/parts.tsx';
import type { Definition } from './draft.ts';

/** What runs: what is in the editor, or the id that a saved graph was loaded under. */
export type Startable = { readonly definition: Definition } | { readonly graphId: string };

/** Asks for the variables and starts a graph. */
export function StartDialog({
  name,
  startable,
  variables,
  asksPeople,
  onClose,
}: {
  readonly name: string;
  readonly startable: Startable;
  readonly variables: readonly string[];
  /** An approval gate asks in the inbox, so the inbox must be told. */
  readonly asksPeople: boolean;
  readonly onClose: () => void;
}) {
  const { client } = useSession();
  const [values, setValues] = useState<Readonly<Record<string, string>>>({});
  const [tells, setTells] = useState(true);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const errors: FieldErrors = fieldErrors(error);
  const start = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      const { graphId } = await client.call('graph.execute', {
        ...('definition' in startable ? startable.definition : startable),
        // A name that got no value is left out: the gateway shows the gap, where an empty text would hide it.
        variables: Object.fromEntries(Object.entries(values).filter(([, value]) => value !== '')),
        ...((tells || asksPeople) && { announceChannelType: 'gateway', announceChannelId: 'inbox' }),
      });
      // First, for the editor may ask about what is not saved, and somebody may stay.
      onClose();
      navigate(`/graphs/runs/${graphId}`);
    } catch (failure) {
      setError(failure);
      setBusy(false);
    }
  };
  return (
    <Dialog title={`Run ${name}`} onClose={onClose}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          void start();
        }}
      >
        <div className="dialog-body">
          {variables.length === 0 && <p>It has no variables.</p>}
          {variables.map((variable) => (
            <DraftField key={variable} errors={errors} path={`variables.${variable}`} label={variable}>
              {(own) => (
                <textarea
                  {...own}
                  rows={2}
                  value={values[variable] ?? ''}
                  onChange={(event) => setValues({ ...values, [variable]: event.target.value })}
                />
              )}
            </DraftField>
          ))}
          {asksPeople ? (
            <Notice>It asks for your approval, in your inbox and on its page.</Notice>
          ) : (
            <label className="check">
              <input type="checkbox" checked={tells} onChange={(event) => setTells(event.target.checked)} />
              Tell my inbox when it has ended
            </label>
          )}
        </div>
        {error !== undefined && <Failure error={error} title="It has not begun." />}
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button submit look="primary" icon="play" disabled={busy}>
            {busy ? 'Starting…' : 'Run'}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

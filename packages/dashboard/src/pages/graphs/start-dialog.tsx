import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { type FieldErrors, fieldErrors } from '../../data/field-errors.ts';
import { useAction } from '../../data/use-action.ts';
import { navigate } from '../../router.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { DraftField } from '../../ui/draft-field.tsx';
import { Button, Failure, Notice } from '../../ui/parts.tsx';
import type { Definition } from './draft.ts';

/** What to run: the graph in the editor, or the id of a loaded saved graph. */
export type Startable = { readonly definition: Definition } | { readonly graphId: string };

/** Asks for variables and starts a graph. */
export function StartDialog({
  name,
  startable,
  variables,
  asksPeople,
  initial = {},
  onClose,
}: {
  readonly name: string;
  readonly startable: Startable;
  readonly variables: readonly string[];
  /** True when the graph has approval gates, which ask in the inbox: announcements must go there then. */
  readonly asksPeople: boolean;
  /** Values of the variables to begin with. */
  readonly initial?: Readonly<Record<string, string>>;
  readonly onClose: () => void;
}) {
  const { client } = useSession();
  const [values, setValues] = useState(initial);
  const [notifies, setNotifies] = useState(true);
  const { busy, error, run } = useAction();
  const errors: FieldErrors = fieldErrors(error);
  const start = async (): Promise<void> => {
    const { graphId } = await client.call('graph.execute', {
      ...('definition' in startable ? startable.definition : startable),
      // Omits variables without a value: the gateway reports them, while an empty text would hide the gap.
      variables: Object.fromEntries(Object.entries(values).filter(([, value]) => value !== '')),
      ...((notifies || asksPeople) && { announceChannelType: 'gateway', announceChannelId: 'inbox' }),
    });
    // Called first, because the editor may ask about unsaved changes and the user may stay.
    onClose();
    navigate(`/graphs/runs/${graphId}`);
  };
  return (
    <Dialog title={t('Run {name}', { name })} onClose={onClose}>
      <form
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          run(start);
        }}
      >
        <div className="dialog-body">
          {variables.length === 0 && <p>{t('No variables.')}</p>}
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
            <Notice>{t('The graph asks for your approval in your inbox and on its page.')}</Notice>
          ) : (
            <label className="check">
              <input type="checkbox" checked={notifies} onChange={(event) => setNotifies(event.target.checked)} />
              {t('Notify my inbox when it ends')}
            </label>
          )}
        </div>
        {error !== undefined && <Failure error={error} title={t('Failed to start.')} />}
        <footer>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button submit look="primary" icon="play" disabled={busy}>
            {busy ? t('Starting…') : t('Run')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

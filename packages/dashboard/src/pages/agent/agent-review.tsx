import { t } from '../../language.ts';
import { useSession } from '../../data/context.ts';
import type { ConfigChange } from '../../data/config-changes.ts';
import { useAction } from '../../data/use-action.ts';
import { ChangeList } from '../../ui/change-list.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Notice } from '../../ui/parts.tsx';
import type { Saved } from '../../ui/schema/save-bar.tsx';
import type { Check } from '../../ui/schema/use-check.ts';
import type { Draft } from '../../ui/schema/use-draft.ts';
import { patchOf } from './agent-changes.ts';

/** Shows what would change for the agent, and saves it. */
export function AgentReview({
  agentId,
  draft: { changes },
  check,
  onSaved,
  onClose,
}: {
  readonly agentId: string;
  readonly draft: Draft;
  readonly check: Check<readonly ConfigChange[]>;
  readonly onSaved: (saved: Saved) => void;
  readonly onClose: () => void;
}) {
  const { client } = useSession();
  const { busy, error, run } = useAction();
  const preview = check.changes === changes ? check.preview : undefined;
  const save = async (): Promise<void> => {
    await client.call('agents.update', { agentId, config: patchOf(changes) });
    onSaved({ title: t('Saved.'), detail: t('In force from the next turn.') });
  };
  return (
    <Dialog title={t('Review and save')} onClose={onClose} wide>
      <div className="dialog-body">
        {preview !== undefined ? (
          <>
            <ChangeList changes={preview} />
            {preview.length === 0 && <p className="hint">{t('Only the text of config.yaml changes.')}</p>}
            {preview.some(({ path, after }) => path === 'tools.profile' && after === 'full') && (
              <Notice tone="warn">{t('The profile full grants the agent every tool.')}</Notice>
            )}
          </>
        ) : check.changes === changes && check.error !== undefined ? (
          <Failure error={check.error} />
        ) : (
          <p className="hint" role="status">
            {t('Checking…')}
          </p>
        )}
      </div>
      {error !== undefined && <Failure error={error} />}
      <footer>
        <Button onClick={onClose}>{t('Cancel')}</Button>
        <Button look="primary" disabled={busy || preview === undefined} onClick={() => run(save)}>
          {busy ? t('Saving…') : t('Save')}
        </Button>
      </footer>
    </Dialog>
  );
}

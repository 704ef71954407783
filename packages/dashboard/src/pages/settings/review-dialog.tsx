import { t, tx } from '../../language.ts';
import { GatehouseError } from '@gatehouse/client';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { ChangeList } from '../../ui/change-list.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { GitDiffView } from '../../ui/diff-view.tsx';
import { Button, Failure, Notice } from '../../ui/parts.tsx';
import type { Saved } from '../../ui/schema/save-bar.tsx';
import type { Check } from '../../ui/schema/use-check.ts';
import type { Draft } from '../../ui/schema/use-draft.ts';
import { type Preview, toWire } from './preview.ts';

/** Shows what would be written to config.yaml, and writes it unless the file has changed since. */
export function ReviewDialog({
  draft: { changes, digest, meanwhile },
  check,
  reload,
  onSaved,
  onClose,
}: {
  readonly draft: Draft;
  readonly check: Check<Preview>;
  readonly reload: () => void;
  readonly onSaved: (saved: Saved) => void;
  readonly onClose: () => void;
}) {
  const { client } = useSession();
  const { busy, error, run } = useAction();
  const [confirmed, setConfirmed] = useState<string>();
  const preview = check.changes === changes ? check.preview : undefined;
  const guarded = preview?.protected ?? [];
  const isConfirmed = guarded.length === 0 || confirmed === guarded.join();
  const hasConflict = error instanceof GatehouseError && error.code === 'conflict';
  const save = async (): Promise<void> => {
    try {
      const { version, changed, restart } = await client.call('config.patch', {
        changes: toWire(changes),
        ifDigest: digest,
        ...(guarded.length > 0 && { confirm: true }),
      });
      const live = changed.filter((key) => !restart.includes(key));
      const parts = [
        live.length > 0 ? t('In force now: {live}.', { live: listed(live) }) : undefined,
        restart.length > 0 ? t('In force after a restart: {restart}.', { restart: listed(restart) }) : undefined,
      ];
      onSaved({ title: t('Saved as version {version}.', { version }), detail: parts.filter((part) => part !== undefined).join(' ') });
    } finally {
      // After a conflict the changes move onto the new version, and are shown here again.
      reload();
    }
  };
  return (
    <Dialog title={t('Review and save')} onClose={onClose} wide>
      <div className="dialog-body">
        {hasConflict && (
          <Notice tone="warn">
            <div className="meanwhile">
              <p>
                {tx('{name} Below your changes are made in the new version: check them, and save again.', {
                  name: <strong>{t('config.yaml was changed meanwhile; nothing was saved.')}</strong>,
                })}
              </p>
              {meanwhile.length > 0 && <ChangeList changes={meanwhile} />}
            </div>
          </Notice>
        )}
        {preview === undefined ? (
          check.changes === changes && check.error !== undefined ? (
            <Failure error={check.error} />
          ) : (
            <p className="hint" role="status">
              {t('Checking…')}
            </p>
          )
        ) : (
          <>
            <Outcome live={preview.changed.filter((key) => !preview.restart.includes(key))} restart={preview.restart} />
            {preview.diff === undefined || preview.diff === '' ? (
              <p role="status">{t('No changes.')}</p>
            ) : (
              <GitDiffView text={preview.diff} label={t('Changes of config.yaml')} />
            )}
            {guarded.length > 0 && (
              <label className="check guarded">
                <input type="checkbox" checked={isConfirmed} onChange={({ target }) => setConfirmed(target.checked ? guarded.join() : undefined)} />
                <span>
                  {tx('I confirm the change of {keys}: {span}. Such keys decide who may do what.', {
                    keys: plural(guarded.length, 'protected key'),
                    span: <span className="mono">{guarded.join(', ')}</span>,
                  })}
                </span>
              </label>
            )}
          </>
        )}
      </div>
      {error !== undefined && !hasConflict && <Failure error={error} />}
      <footer>
        <Button onClick={onClose}>{t('Cancel')}</Button>
        <Button look="primary" disabled={busy || preview === undefined || !isConfirmed} onClick={() => run(save)}>
          {busy ? t('Saving…') : t('Save')}
        </Button>
      </footer>
    </Dialog>
  );
}

function Outcome({ live, restart }: { readonly live: readonly string[]; readonly restart: readonly string[] }) {
  if (live.length + restart.length === 0) return null;
  return (
    <dl className="facts">
      {live.length > 0 && (
        <>
          <dt>{t('In force at once')}</dt>
          <dd className="mono">{live.join(', ')}</dd>
        </>
      )}
      {restart.length > 0 && (
        <>
          <dt>{t('After a restart')}</dt>
          <dd className="mono">{restart.join(', ')}</dd>
        </>
      )}
    </dl>
  );
}

function listed(keys: readonly string[]): string {
  return keys.length > 8 ? t('{keys} and {keys2} more', { keys: keys.slice(0, 8).join(', '), keys2: keys.length - 8 }) : keys.join(', ');
}

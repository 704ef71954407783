import { t, tx } from '../../language.ts';
import { RestartNow } from '../../restart-now.tsx';
import { ChangeList } from '../../ui/change-list.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Button, Notice } from '../../ui/parts.tsx';
import type { Config } from '../../data/use-config.ts';
import type { Draft } from '../../ui/schema/use-draft.ts';

/** What holds for the whole configuration: a file that cannot be used, a restart that is due, and changes of others. */
export function SettingsNotices({ config: { fault, restartNeeded }, draft }: { readonly config: Config; readonly draft: Draft }) {
  return (
    <>
      {fault !== undefined && (
        <Notice tone="bad">
          <div>
            <p>
              {tx('{name} Nothing can be changed until the file is repaired by hand, or replaced by an earlier version under {link}.', {
                name: <strong>{t("config.yaml can't be used as it is now; an earlier configuration is in force.")}</strong>,
                link: <PageLink to="/settings/history">{t('History')}</PageLink>,
              })}
            </p>
            <p className="fault">{fault}</p>
          </div>
        </Notice>
      )}
      {restartNeeded.length > 0 && (
        <div className="notice warn" role="status" aria-label={t('Restart needed')}>
          <div>
            <p>
              {tx('{name} Saved, and not in force yet: {restartNeeded}. Running turns are completed first.', {
                name: <strong>{t('A restart is needed.')}</strong>,
                restartNeeded: restartNeeded.join(', '),
              })}
            </p>
          </div>
          <RestartNow />
        </div>
      )}
      {draft.meanwhile.length > 0 && (
        <div className="notice warn" role="alert">
          <div className="meanwhile">
            <p>
              {tx('{name} Your changes are kept, and would be made in the new version.', {
                name: <strong>{t('config.yaml has changed meanwhile.')}</strong>,
              })}
            </p>
            <ChangeList changes={draft.meanwhile} />
          </div>
          <Button small onClick={draft.dismissMeanwhile}>
            {t('Dismiss')}
          </Button>
        </div>
      )}
    </>
  );
}

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
              <strong>config.yaml can't be used as it is now; an earlier configuration is in force.</strong> Nothing can be changed until the file is
              repaired by hand, or replaced by an earlier version under <PageLink to="/settings/history">History</PageLink>.
            </p>
            <p className="fault">{fault}</p>
          </div>
        </Notice>
      )}
      {restartNeeded.length > 0 && (
        <div className="notice warn" role="status" aria-label="Restart needed">
          <div>
            <p>
              <strong>A restart is needed.</strong> Saved, and not in force yet: {restartNeeded.join(', ')}. Running turns are completed first.
            </p>
          </div>
          <RestartNow />
        </div>
      )}
      {draft.meanwhile.length > 0 && (
        <div className="notice warn" role="alert">
          <div className="meanwhile">
            <p>
              <strong>config.yaml has changed meanwhile.</strong> Your changes are kept, and would be made in the new version.
            </p>
            <ChangeList changes={draft.meanwhile} />
          </div>
          <Button small onClick={draft.dismissMeanwhile}>
            Dismiss
          </Button>
        </div>
      )}
    </>
  );
}

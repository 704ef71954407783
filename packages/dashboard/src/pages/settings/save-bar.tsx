import { useState } from 'react';
import { describeError } from '../../data/errors.ts';
import type { FieldErrors } from '../../data/field-errors.ts';
import { plural } from '../../data/format.ts';
import { Icon } from '../../ui/icon.tsx';
import { Button, IconButton } from '../../ui/parts.tsx';
import type { Setting } from '../../ui/schema/setting.ts';
import { ReviewDialog, type Saved } from './review-dialog.tsx';
import type { Findable } from './search-settings.ts';
import type { Check } from './use-check.ts';
import type { Draft } from './use-draft.ts';

/** Says how many changes are not saved, and what keeps them from being saved. */
export function SaveBar({
  draft,
  check,
  errors,
  reload,
  findable,
  onShow,
}: {
  readonly draft: Draft;
  readonly check: Check;
  readonly errors: FieldErrors;
  readonly reload: () => void;
  readonly findable: readonly Findable[];
  readonly onShow: (setting: Setting) => void;
}) {
  const [isReviewing, setReviewing] = useState(false);
  const [saved, setSaved] = useState<Saved>();
  const { changes, problems } = draft;
  const isDirty = changes.length > 0 || problems.size > 0;
  const isChecking = check.changes !== changes;
  const [problem] = errors;
  const target = problem === undefined ? undefined : findable.find(({ setting }) => setting.id === problem[0])?.setting;
  return (
    <>
      <div role="status" className="saved">
        {saved !== undefined && !isDirty && <SavedNotice saved={saved} onClose={() => setSaved(undefined)} />}
      </div>
      {isDirty && (
        <div className="save-bar" role="region" aria-label="Unsaved changes">
          <div className="save-text" role="status">
            <strong>{plural(changes.length, 'unsaved change')}</strong>
            {problem !== undefined ? (
              <span className="bad-text cut">
                {target !== undefined && !target.id.includes('*') ? (
                  <button type="button" className="link-like mono" onClick={() => onShow(target)}>
                    {problem[0]}
                  </button>
                ) : (
                  <span className="mono">{problem[0]}</span>
                )}
                : {problem[1]}
              </span>
            ) : isChecking ? (
              <span className="hint">Checking…</span>
            ) : check.error !== undefined ? (
              <span className="bad-text cut">{describeError(check.error).message}</span>
            ) : (
              check.preview !== undefined && <span className="hint">{outlook(check.preview.changed.length, check.preview.restart.length)}</span>
            )}
          </div>
          <Button look="quiet" onClick={draft.discard}>
            Discard
          </Button>
          <Button
            look="primary"
            disabled={isChecking || check.preview === undefined || problems.size > 0}
            onClick={() => {
              setSaved(undefined);
              setReviewing(true);
            }}
          >
            Review and save
          </Button>
        </div>
      )}
      {isReviewing && (
        <ReviewDialog
          draft={draft}
          check={check}
          reload={reload}
          onClose={() => setReviewing(false)}
          onSaved={(result) => {
            setSaved(result);
            setReviewing(false);
          }}
        />
      )}
    </>
  );
}

function outlook(changed: number, restart: number): string {
  if (changed === 0) return 'Only the text of config.yaml changes';
  if (restart === 0) return 'In force as soon as it is saved';
  return restart === changed ? 'In force after a restart' : `${plural(restart, 'of them needs', 'of them need')} a restart`;
}

function SavedNotice({ saved: { version, changed, restart }, onClose }: { readonly saved: Saved; readonly onClose: () => void }) {
  const live = changed.filter((key) => !restart.includes(key));
  return (
    <div className="save-bar">
      <Icon name="check" />
      <p className="save-text">
        <strong>Saved as version {version}.</strong>
        <span className="hint">
          {live.length > 0 && `In force now: ${listed(live)}. `}
          {restart.length > 0 && `In force after a restart: ${listed(restart)}.`}
        </span>
      </p>
      <IconButton icon="close" label="Dismiss" onClick={onClose} />
    </div>
  );
}

function listed(keys: readonly string[]): string {
  return keys.length > 8 ? `${keys.slice(0, 8).join(', ')} and ${keys.length - 8} more` : keys.join(', ');
}

import { t } from '../../language.ts';
import { type ReactNode, useState } from 'react';
import { describeError } from '../../data/errors.ts';
import type { FieldErrors } from '../../data/field-errors.ts';
import { plural } from '../../data/format.ts';
import { Icon } from '../icon.tsx';
import { Button, IconButton } from '../parts.tsx';
import type { Check } from './use-check.ts';
import type { Draft } from './use-draft.ts';

/** What a save did. */
export interface Saved {
  readonly title: string;
  readonly detail: string;
}

/** Says how many changes are not saved, and what keeps them from being saved; leads to a dialog that shows and saves them. */
export function SaveBar({
  draft,
  check,
  errors,
  outlook,
  review,
  onShow,
}: {
  readonly draft: Draft;
  readonly check: Check<unknown>;
  readonly errors: FieldErrors;
  /** Says when the changes would be in force. */
  readonly outlook: string | undefined;
  readonly review: (onClose: () => void, onSaved: (saved: Saved) => void) => ReactNode;
  /** Shows a key by its id; undefined for one that cannot be shown. */
  readonly onShow: (id: string) => (() => void) | undefined;
}) {
  const [isReviewing, setReviewing] = useState(false);
  const [saved, setSaved] = useState<Saved>();
  const { changes, problems } = draft;
  const isDirty = changes.length > 0 || problems.size > 0;
  const isChecking = changes.length > 0 && check.changes !== changes;
  const [problem] = errors;
  const show = problem === undefined ? undefined : onShow(problem[0]);
  const close = (): void => setReviewing(false);
  return (
    <>
      <div role="status" className="saved">
        {saved !== undefined && !isDirty && (
          <div className="save-bar">
            <Icon name="check" />
            <p className="save-text">
              <strong>{saved.title}</strong>
              <span className="hint">{saved.detail}</span>
            </p>
            <IconButton icon="close" label={t('Dismiss')} onClick={() => setSaved(undefined)} />
          </div>
        )}
      </div>
      {isDirty && (
        <div className="save-bar" role="region" aria-label={t('Unsaved changes')}>
          <div className="save-text" role="status">
            <strong>{plural(changes.length, 'unsaved change')}</strong>
            {problem !== undefined ? (
              <span className="bad-text">
                {show === undefined ? (
                  <span className="mono">{problem[0]}</span>
                ) : (
                  <button type="button" className="link-like mono" onClick={show}>
                    {problem[0]}
                  </button>
                )}
                : {problem[1]}
              </span>
            ) : isChecking ? (
              <span className="hint">{t('Checking…')}</span>
            ) : check.error !== undefined ? (
              <span className="bad-text">{describeError(check.error).message}</span>
            ) : (
              outlook !== undefined && <span className="hint">{outlook}</span>
            )}
          </div>
          <Button look="quiet" onClick={draft.discard}>
            {t('Discard')}
          </Button>
          <Button
            look="primary"
            disabled={isChecking || check.preview === undefined || problems.size > 0}
            onClick={() => {
              setSaved(undefined);
              setReviewing(true);
            }}
          >
            {t('Review and save')}
          </Button>
        </div>
      )}
      {isReviewing &&
        review(close, (result) => {
          setSaved(result);
          close();
        })}
    </>
  );
}

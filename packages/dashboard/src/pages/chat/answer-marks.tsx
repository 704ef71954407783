import { t } from '../../language.ts';
import type { ParamsInput } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { Icon } from '../../ui/icon.tsx';
import { Button, Failure } from '../../ui/parts.tsx';

export type Rating = 'good' | 'bad';

/** Names an answer for `session.feedback`, by its turn or its trace. */
export type MarkedAnswer = Pick<ParamsInput<'session.feedback'>, 'conversationRef' | 'agentId' | 'sessionKey' | 'turnId' | 'traceId'>;

const maxNote = 1000;

/** Marks an answer as good or bad; a bad one can get a note. Pressing a mark again removes it. */
export function AnswerMarks({ answer, stored }: { readonly answer: MarkedAnswer; readonly stored: Rating | undefined }) {
  const { client } = useSession();
  const [rating, setRating] = useState(stored);
  const [asksWhy, setAsksWhy] = useState(false);
  const [note, setNote] = useState('');
  const { busy, error, run } = useAction();

  const mark = (next: Rating | undefined, why?: string): void =>
    run(async () => {
      await client.call('session.feedback', { ...answer, rating: next ?? null, ...(why !== undefined && { note: why }) });
      setRating(next);
      setAsksWhy(next === 'bad' && why === undefined);
    });

  return (
    <>
      {(['good', 'bad'] as const).map((one) => (
        <button
          key={one}
          type="button"
          className="icon-button"
          aria-label={one === 'good' ? t('Good answer') : t('Bad answer')}
          title={one === 'good' ? t('Good answer') : t('Bad answer')}
          aria-pressed={rating === one}
          disabled={busy}
          onClick={() => mark(rating === one ? undefined : one)}
        >
          <Icon name={one === 'good' ? 'thumbUp' : 'thumbDown'} />
        </button>
      ))}
      {asksWhy && (
        <form
          className="mark-note"
          onSubmit={(event) => {
            event.preventDefault();
            if (note.trim() === '') setAsksWhy(false);
            else mark('bad', note.trim());
          }}
        >
          <input
            aria-label={t('What is wrong with the answer?')}
            placeholder={t('What is wrong?')}
            maxLength={maxNote}
            value={note}
            onChange={(event) => setNote(event.target.value)}
          />
          <Button small submit disabled={busy}>
            {t('Save')}
          </Button>
        </form>
      )}
      {error !== undefined && <Failure error={error} />}
    </>
  );
}

import { t } from '../../language.ts';
import { useEffect, useEffectEvent, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useStore } from '../../data/store.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { PageLink } from '../../ui/link.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';

const greeting = t('Hello! Who are you, and what can you do for me?');

/** A first question in a conversation that the chat continues. */
export function HelloStep({
  greets,
  onAnswer,
  onNext,
  onOther,
}: {
  /** Sends the greeting at once: the user has just asked for it. */
  readonly greets: boolean;
  readonly onAnswer: () => void;
  readonly onNext: () => void;
  /** Opens the step in which the model is selected. */
  readonly onOther: () => void;
}) {
  const { chats } = useSession();
  // The draft of the chat page: leaving for the chat shows the same conversation.
  const [thread] = useState(() => chats.draft.get());
  const { messages, running, ref } = useStore(thread);
  const [text, setText] = useState(greeting);
  const answer = messages.findLast(({ role }) => role === 'assistant');
  const failure = answer?.error ?? (answer?.result?.failure === undefined ? undefined : new Error(answer.result.failure.message));

  const send = (): void => void chats.send(thread, text.trim(), []);
  const greetOnce = useEffectEvent(() => {
    if (greets && messages.length === 0) send();
  });
  useEffect(() => greetOnce(), [greets]);
  const answered = useEffectEvent(() => onAnswer());
  const state = answer?.state;
  useEffect(() => {
    if (state === 'done') answered();
  }, [state]);

  return (
    <div className="start-form">
      {answer === undefined ? (
        <form
          className="start-form"
          onSubmit={(event) => {
            event.preventDefault();
            send();
          }}
        >
          <Field label={t('Your question')}>
            {(field) => <input id={field} required maxLength={2000} value={text} onChange={(event) => setText(event.target.value)} />}
          </Field>
          <div className="start-actions">
            <Button submit look="primary" icon="send" disabled={running || text.trim() === ''}>
              {t('Send')}
            </Button>
          </div>
        </form>
      ) : (
        <div className="start-answer" aria-busy={running}>
          <p className="hint">{messages.findLast(({ role }) => role === 'user')?.text}</p>
          {answer.text !== '' && <Markdown text={answer.text} />}
          {state === 'streaming' && <span className="typing" aria-hidden="true" />}
          <p className="visually-hidden" role="status">
            {running ? t('Answer in progress.') : state === 'done' ? t('Answer complete.') : ''}
          </p>
        </div>
      )}
      {failure !== undefined && <Failure error={failure} title={t('No answer.')} onRetry={() => void chats.retry(thread)} />}
      {answer !== undefined && !running && (
        <div className="start-actions">
          {failure === undefined ? (
            <Button look="primary" onClick={onNext}>
              {t('Continue')}
            </Button>
          ) : (
            <Button onClick={onOther}>{t('Use another model')}</Button>
          )}
          <PageLink to={ref === undefined ? '/chat' : `/chat/${ref}`} className="button quiet">
            {t('Open it in the chat')}
          </PageLink>
        </div>
      )}
    </div>
  );
}

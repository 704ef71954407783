import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';

/** Shows the question of an approval gate and sends the answer, which the gateway interprets. */
export function GateAnswer({
  graphId,
  nodeId,
  question,
  onAnswered,
}: {
  readonly graphId: string;
  readonly nodeId: string;
  /** The question; undefined when it is already shown. */
  readonly question?: string | undefined;
  readonly onAnswered: () => void;
}) {
  const { client } = useSession();
  const [typed, setTyped] = useState('');
  const { busy, error, run } = useAction();
  const answer = (text: string): void => run(() => client.call('graph.answer', { graphId, nodeId, answer: text }).then(onAnswered));
  return (
    <form
      className="graph-answer"
      onSubmit={(event) => {
        event.preventDefault();
        answer(typed);
      }}
    >
      <p>
        <strong>{t('The graph is waiting for your answer.')}</strong>
      </p>
      {question !== undefined && (
        <div className="graph-question" role="region" aria-label={t('Question of {nodeId}', { nodeId })}>
          <Markdown text={question} />
        </div>
      )}
      {error !== undefined && <Failure error={error} />}
      <div className="actions">
        <Button look="primary" disabled={busy} onClick={() => answer('yes')}>
          {t('Approve')}
        </Button>
        <Button disabled={busy} onClick={() => answer('no')}>
          {t('Refuse')}
        </Button>
      </div>
      <Field label={t('Or answer in text')} hint={t('For example: yes. A refusal takes precedence; conditional answers are not accepted.')}>
        {(id, hint) => <input id={id} aria-describedby={hint} maxLength={2000} value={typed} onChange={(event) => setTyped(event.target.value)} />}
      </Field>
      <Button submit small disabled={busy || typed.trim() === ''}>
        {t('Answer')}
      </Button>
    </form>
  );
}

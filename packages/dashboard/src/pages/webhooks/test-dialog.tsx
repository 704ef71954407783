import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { PageLink } from '../../ui/link.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Field, Notice } from '../../ui/parts.tsx';

type Tested = Result<'webhooks.test'>;

/** Previews what a mapping makes of a payload, and optionally runs it. */
export function TestDialog({ mapping, onClose, onRun }: { readonly mapping: string; readonly onClose: () => void; readonly onRun: () => void }) {
  const { client } = useSession();
  const [payload, setPayload] = useState('{}');
  const [headers, setHeaders] = useState('');
  const { busy, error, run } = useAction();
  const [tested, setTested] = useState<Tested>();
  const test = async (isReal: boolean): Promise<void> => {
    try {
      setTested(await client.call('webhooks.test', { mapping, payload: JSON.parse(payload), headers: parseHeaders(headers), run: isReal }));
      if (isReal) onRun();
    } catch (failure) {
      setTested(undefined);
      throw failure instanceof SyntaxError ? new Error(`The payload is not valid JSON: ${failure.message}`, { cause: failure }) : failure;
    }
  };
  return (
    <Dialog title={t('Test {mapping}', { mapping })} onClose={onClose} wide>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(() => test(false));
        }}
      >
        <div className="dialog-body">
          <Field label={t('Payload')} hint={t('JSON as the sender would send it. No signature is required.')}>
            {(id, hint) => (
              <textarea
                id={id}
                aria-describedby={hint}
                className="mono"
                rows={8}
                spellCheck={false}
                value={payload}
                onChange={(event) => setPayload(event.target.value)}
              />
            )}
          </Field>
          <Field label={t('Headers')} hint={t('One per line, for example x-github-event: issues.')}>
            {(id, hint) => (
              <textarea
                id={id}
                aria-describedby={hint}
                className="mono"
                rows={2}
                spellCheck={false}
                value={headers}
                onChange={(event) => setHeaders(event.target.value)}
              />
            )}
          </Field>
          <div role="status">{tested !== undefined && <Outcome tested={tested} />}</div>
        </div>
        {error !== undefined && <Failure error={error} />}
        <footer>
          <Button onClick={onClose}>{t('Close')}</Button>
          <Button disabled={busy} onClick={() => run(() => test(true))}>
            {t('Run')}
          </Button>
          <Button submit look="primary" disabled={busy}>
            {t('Preview')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

function Outcome({ tested: { mapping, takenBy, message, sessionKey, conversationRef, deliveryId } }: { readonly tested: Tested }) {
  return (
    <div className="webhook-outcome">
      {takenBy !== mapping && (
        <Notice tone="warn">{takenBy === null ? t('No mapping matches.') : t('The mapping {takenBy} matches first.', { takenBy })}</Notice>
      )}
      {deliveryId !== null && (
        <Notice tone="good">
          <span>
            {tx('Running as {span}', { span: <span className="mono">{deliveryId}</span> })}
            {conversationRef !== null && (
              <> {tx('in {link}', { link: <PageLink to={`/conversations/${conversationRef}`}>{t('this conversation')}</PageLink> })}</>
            )}
            .
          </span>
        </Notice>
      )}
      <pre className="raw-text" aria-label={t('Message')}>
        {message}
      </pre>
      {sessionKey !== null && <p className="hint mono">{sessionKey}</p>}
    </div>
  );
}

function parseHeaders(text: string): Record<string, string> {
  return Object.fromEntries(
    text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((line) => {
        const at = line.indexOf(':');
        if (at < 1) throw new Error(`"${line}" is not a valid header: expected name: value.`);
        return [line.slice(0, at).trim().toLowerCase(), line.slice(at + 1).trim()];
      }),
  );
}

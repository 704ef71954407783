import { t } from '../../language.ts';
import { useEffect, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Notice } from '../../ui/parts.tsx';

const pollMs = 2000;

/** Sends a person to the authorization server in another tab, and waits until the server is connected. */
export function AuthorizeDialog({
  name,
  url,
  onClose,
  onDone,
}: {
  readonly name: string;
  readonly url: string;
  readonly onClose: () => void;
  readonly onDone: (text: string) => void;
}) {
  const { client } = useSession();
  const [failure, setFailure] = useState<string>();

  useEffect(() => {
    const leave = new AbortController();
    const poll = async (): Promise<void> => {
      const { status, toolCount, authorization } = await client.call('mcp.status', { name }, { signal: leave.signal });
      if (leave.signal.aborted) return;
      setFailure(authorization?.failure);
      if (status !== 'connected' || authorization?.state !== 'authorized' || authorization.missingScopes !== undefined) return;
      onDone(t('Connected {name}: {tools}.', { name, tools: plural(toolCount, 'tool') }));
      onClose();
    };
    const timer = setInterval(() => void poll().catch(() => undefined), pollMs);
    return () => {
      clearInterval(timer);
      leave.abort();
    };
  }, [client, name, onClose, onDone]);

  return (
    <Dialog title={t('Authorize {name}', { name })} onClose={onClose}>
      <div className="dialog-body">
        <p>
          {t(
            'The server asks you to sign in at {host} and to allow Gatehouse to use it. The tools are then available to the agents that may use this server.',
            { host: new URL(url).host },
          )}
        </p>
        {failure === undefined ? (
          <p className="hint" role="status">
            {t('This window notices when you are done. The link works once, for ten minutes.')}
          </p>
        ) : (
          <div role="status">
            <Notice tone="warn">{t('Not authorized: {failure}. Close this and try again.', { failure })}</Notice>
          </div>
        )}
      </div>
      <footer>
        <Button onClick={onClose}>{t('Close')}</Button>
        <a className="button primary" href={url} target="_blank" rel="noopener noreferrer">
          {t('Sign in')}
        </a>
      </footer>
    </Dialog>
  );
}

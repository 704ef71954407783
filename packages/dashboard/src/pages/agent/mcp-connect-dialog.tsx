import { t } from '../../language.ts';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { Dialog } from '../../ui/dialog.tsx';
import { Button, Failure, Field } from '../../ui/parts.tsx';

const transports = ['http', 'sse'] as const;

/** Connects a remote server and stores it. */
export function ConnectDialog({
  agentId,
  onClose,
  onDone,
}: {
  readonly agentId: string;
  readonly onClose: () => void;
  readonly onDone: (text: string) => void;
}) {
  const { client } = useSession();
  const [name, setName] = useState('');
  const [url, setUrl] = useState('');
  const [transport, setTransport] = useState<(typeof transports)[number]>('http');
  const [authorization, setAuthorization] = useState('');
  const [onlyHere, setOnlyHere] = useState(false);
  const { busy, error, run } = useAction();
  const connect = async (): Promise<void> => {
    const server = {
      name,
      transport,
      url: url.trim(),
      ...(authorization.trim() !== '' && { headers: { authorization: authorization.trim() } }),
      ...(onlyHere && { agents: [agentId] }),
    };
    const { status, toolCount } = await client.call('mcp.connect', server, { timeoutMs: 120_000 });
    onDone(
      status === 'needs_authorization'
        ? t('Stored {name}; authorize it now.', { name })
        : t('Connected {name}: {tools}.', { name, tools: plural(toolCount, 'tool') }),
    );
    onClose();
  };
  return (
    <Dialog title={t('Connect an MCP server')} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          run(connect);
        }}
      >
        <div className="dialog-body">
          <Field label={t('Name')} hint={t('Letters, digits, _ and single -. Its tools carry this name.')}>
            {(id, hint) => (
              <input id={id} aria-describedby={hint} required maxLength={32} value={name} onChange={(event) => setName(event.target.value)} />
            )}
          </Field>
          <Field label={t('Address')} hint={t('The host must have a public address. Set up private ones in config.yaml.')}>
            {(id, hint) => (
              <input
                id={id}
                type="url"
                aria-describedby={hint}
                required
                placeholder="https://"
                value={url}
                onChange={(event) => setUrl(event.target.value)}
              />
            )}
          </Field>
          <Field label={t('Transport')}>
            {(id) => (
              <select id={id} value={transport} onChange={({ target: { value } }) => setTransport(transports.find((one) => one === value) ?? 'http')}>
                <option value="http">{t('Streamable HTTP')}</option>
                <option value="sse">{t('SSE (older servers)')}</option>
              </select>
            )}
          </Field>
          <Field
            label={t('Authorization')}
            hint={t('Value of the Authorization header, for example Bearer …. Stored encrypted and not shown again.')}
          >
            {(id, hint) => (
              <input
                id={id}
                type="password"
                autoComplete="off"
                aria-describedby={hint}
                value={authorization}
                onChange={(event) => setAuthorization(event.target.value)}
              />
            )}
          </Field>
          <label className="check">
            <input type="checkbox" checked={onlyHere} onChange={() => setOnlyHere(!onlyHere)} />
            {t('Only {agentId} can use its tools', { agentId })}
          </label>
        </div>
        {error !== undefined && <Failure error={error} />}
        <footer>
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button submit look="primary" disabled={busy}>
            {busy ? t('Connecting…') : t('Connect')}
          </Button>
        </footer>
      </form>
    </Dialog>
  );
}

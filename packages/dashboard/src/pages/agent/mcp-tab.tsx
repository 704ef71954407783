import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { Confirm, Dialog } from '../../ui/dialog.tsx';
import { FailedTraces } from '../../ui/object-link.tsx';
import { Badge, Button, Empty, Failure, Notice, Skeleton, type Tone } from '../../ui/parts.tsx';
import { NextTry } from '../../ui/when.tsx';
import { AuthorizeDialog } from './mcp-authorize-dialog.tsx';
import { ConnectDialog } from './mcp-connect-dialog.tsx';

type Server = Result<'mcp.list'>['servers'][number];

const tones: Readonly<Record<Server['status'], Tone>> = {
  connected: 'good',
  connecting: 'warn',
  reconnecting: 'warn',
  disconnected: 'neutral',
  error: 'bad',
  needs_authorization: 'warn',
};
/** Timeout for connecting, which may have to start a program first. */
const patienceMs = 120_000;

/** All MCP servers, marked by whether this agent can use their tools. */
export function McpTab({ agentId }: { readonly agentId: string }) {
  const { client } = useSession();
  const listed = useLoad(['mcp.list'], (signal) => client.call('mcp.list', {}, { signal }));
  const { running, error, run } = useAction();
  const [outcome, setOutcome] = useState<{ readonly tone: Tone; readonly text: string }>();
  const [asked, setAsked] = useState<
    'connect' | { readonly show: string } | { readonly forget: string } | { readonly authorize: string; readonly url: string }
  >();
  const close = (): void => setAsked(undefined);

  const start = (name: string, work: () => Promise<{ readonly tone: Tone; readonly text: string }>): void => {
    setOutcome(undefined);
    run(() => work().then(setOutcome).finally(listed.reload), name);
  };
  const connect = async (name: string, again: boolean) => {
    const { toolCount } = await client.call(again ? 'mcp.reconnect' : 'mcp.connect', { name }, { timeoutMs: patienceMs });
    return { tone: 'good', text: t('Connected {name}: {tools}.', { name, tools: plural(toolCount, 'tool') }) } as const;
  };
  const test = async (name: string) => {
    const found = await client.call('mcp.test', { name }, { timeoutMs: patienceMs });
    return found.success
      ? ({
          tone: 'good',
          text: t('{name} responded in {latency} ms: {tools}.', {
            name,
            latency: found.latencyMs.toFixed(1),
            tools: plural(found.toolCount, 'tool'),
          }),
        } as const)
      : ({ tone: 'warn', text: t('{name} failed: {error}', { name, error: found.error }) } as const);
  };
  const authorize = async (name: string) => {
    const { authorizationUrl } = await client.call('mcp.authorize', { name }, { timeoutMs: patienceMs });
    setAsked({ authorize: name, url: authorizationUrl });
    return { tone: 'neutral', text: t('Waiting for the authorization of {name}.', { name }) } as const;
  };
  const disconnect = async (name: string) => {
    await client.call('mcp.disconnect', { name });
    return { tone: 'good', text: t('Disconnected {name}.', { name }) } as const;
  };

  return (
    <>
      <div className="toolbar">
        <p className="hint">
          {t('All agents share these servers, unless a server is limited to some. Local programs are set up in config.yaml only.')}
        </p>
        <span className="grow" />
        <Button icon="plus" onClick={() => setAsked('connect')}>
          {t('Connect server')}
        </Button>
      </div>
      {listed.error !== undefined && <Failure error={listed.error} onRetry={listed.reload} />}
      {error !== undefined && <Failure error={error} />}
      <div role="status">{outcome !== undefined && <Notice tone={outcome.tone}>{outcome.text}</Notice>}</div>
      {listed.data === undefined && listed.loading && <Skeleton lines={4} />}
      {listed.data?.servers.length === 0 && <Empty title={t('No MCP servers')} />}
      <ul className="rows">
        {listed.data?.servers.map((server) => {
          const { name } = server;
          return (
            <ServerRow
              key={name}
              server={server}
              agentId={agentId}
              running={running}
              onShow={() => setAsked({ show: name })}
              onForget={() => setAsked({ forget: name })}
              onAuthorize={() => start(name, () => authorize(name))}
              onTest={() => start(name, () => test(name))}
              onConnect={(again) => start(name, () => connect(name, again))}
              onDisconnect={() => start(name, () => disconnect(name))}
            />
          );
        })}
      </ul>
      {asked === 'connect' && (
        <ConnectDialog
          agentId={agentId}
          onClose={close}
          onDone={(text) => {
            setOutcome({ tone: 'good', text });
            listed.reload();
          }}
        />
      )}
      {typeof asked === 'object' && 'show' in asked && <ServerDialog name={asked.show} onClose={close} />}
      {typeof asked === 'object' && 'authorize' in asked && (
        <AuthorizeDialog
          name={asked.authorize}
          url={asked.url}
          onClose={() => {
            close();
            listed.reload();
          }}
          onDone={(text) => setOutcome({ tone: 'good', text })}
        />
      )}
      {typeof asked === 'object' && 'forget' in asked && (
        <Confirm
          title={t('Forget {forget}?', { forget: asked.forget })}
          action={t('Forget')}
          onClose={close}
          run={async () => {
            await client.call('mcp.disconnect', { name: asked.forget, forget: true });
            listed.reload();
          }}
        >
          <p>{t('The server is disconnected, and its address and headers are deleted.')}</p>
        </Confirm>
      )}
    </>
  );
}

function ServerRow({
  server,
  agentId,
  running,
  onShow,
  onForget,
  onAuthorize,
  onTest,
  onConnect,
  onDisconnect,
}: {
  readonly server: Server;
  readonly agentId: string;
  /** Name of the server that an action is running on. */
  readonly running: string | undefined;
  readonly onShow: () => void;
  readonly onForget: () => void;
  readonly onAuthorize: () => void;
  readonly onTest: () => void;
  readonly onConnect: (again: boolean) => void;
  readonly onDisconnect: () => void;
}) {
  const { name, status, transport, source, toolCount, agents, lastHealthCheck } = server;
  const isBusy = running !== undefined;
  const needsPerson = server.authorization?.nextStep !== undefined;
  return (
    <li className="row">
      <div className="row-main">
        <button type="button" className="row-title link-like mono" onClick={onShow}>
          {name}
        </button>
        {server.error !== undefined && (
          <p className="snippet">
            {server.error} {server.retryAt !== undefined && <NextTry atMs={server.retryAt} />}
          </p>
        )}
        <p>
          <FailedTraces where={`tool ~ "mcp__${name}--" and toolErrors > 0`} label={t('Failed turns with tools of {name}', { name })} />
        </p>
      </div>
      <div className="row-facts">
        <Badge>{transport}</Badge>
        <Badge>{source === 'config' ? 'config.yaml' : t('stored')}</Badge>
        {agents !== undefined && (
          <Badge tone={agents.includes(agentId) ? 'accent' : 'warn'}>{agents.includes(agentId) ? t('for this agent') : t('other agents only')}</Badge>
        )}
        <span>{plural(toolCount, 'tool')}</span>
        {lastHealthCheck !== null && <span>{t('last response {lastHealthCheck}', { lastHealthCheck: ago(lastHealthCheck) })}</span>}
        <Badge tone={tones[status]}>{running === name ? t('working…') : status.replaceAll('_', ' ')}</Badge>
      </div>
      <div className="actions">
        {needsPerson && (
          <Button small look="primary" disabled={isBusy} label={t('Authorize {name}', { name })} onClick={onAuthorize}>
            {t('Authorize')}
          </Button>
        )}
        <Button small disabled={isBusy} label={t('Test {name}', { name })} onClick={onTest}>
          {t('Test')}
        </Button>
        {status === 'connected' ? (
          <>
            <Button small disabled={isBusy} label={t('Reconnect {name}', { name })} onClick={() => onConnect(true)}>
              {t('Reconnect')}
            </Button>
            <Button small disabled={isBusy} label={t('Disconnect {name}', { name })} onClick={onDisconnect}>
              {t('Disconnect')}
            </Button>
          </>
        ) : (
          <Button small disabled={isBusy} label={t('Connect {name}', { name })} onClick={() => onConnect(false)}>
            {t('Connect')}
          </Button>
        )}
        {source === 'stored' && (
          <Button small look="quiet" icon="trash" disabled={isBusy} label={t('Forget {name}', { name })} onClick={onForget}>
            {t('Forget')}
          </Button>
        )}
      </div>
    </li>
  );
}

/** Shows the state and the tools of a server; its own texts are shown as plain text. */
function ServerDialog({ name, onClose }: { readonly name: string; readonly onClose: () => void }) {
  const { client } = useSession();
  const found = useLoad(['mcp.status', name], (signal) => client.call('mcp.status', { name }, { signal }));
  const server = found.data;
  return (
    <Dialog title={t('MCP server {name}', { name })} onClose={onClose} wide>
      <div className="dialog-body">
        {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
        {server === undefined && found.loading && <Skeleton lines={5} />}
        {server !== undefined && (
          <>
            <dl className="facts">
              <dt>{t('State')}</dt>
              <dd>
                <Badge tone={tones[server.status]}>{server.status.replaceAll('_', ' ')}</Badge>
              </dd>
              {server.address !== undefined && (
                <>
                  <dt>{t('Address')}</dt>
                  <dd className="mono">{server.address}</dd>
                </>
              )}
              {server.serverVersion !== undefined && (
                <>
                  <dt>{t('Server')}</dt>
                  <dd>{`${server.serverVersion.name} ${server.serverVersion.version}`}</dd>
                </>
              )}
              {server.error !== undefined && (
                <>
                  <dt>{t('Error')}</dt>
                  <dd>
                    {server.error} {server.retryAt !== undefined && <NextTry atMs={server.retryAt} />}
                  </dd>
                </>
              )}
              <dt>{t('Attempts')}</dt>
              <dd>
                {t('{reconnectAttempt} of {maxReconnectAttempts}', {
                  reconnectAttempt: server.reconnectAttempt,
                  maxReconnectAttempts: server.maxReconnectAttempts,
                })}
              </dd>
            </dl>
            {server.instructions !== undefined && <pre className="raw-text">{server.instructions}</pre>}
            {server.stderr !== undefined && (
              <details open={server.status === 'error'}>
                <summary>{t('Error output')}</summary>
                <pre className="raw-text">{server.stderr}</pre>
              </details>
            )}
            <h3>{plural(server.tools.length, 'tool')}</h3>
            {server.droppedTools > 0 && (
              <p className="hint">{t('{tools} skipped: invalid or over the limit.', { tools: plural(server.droppedTools, 'tool') })}</p>
            )}
            <ul className="history">
              {server.tools.map((tool) => (
                <li key={tool.callableName}>
                  <span className="mono">{tool.callableName}</span> <Badge tone={tool.risk === 'read' ? 'neutral' : 'warn'}>{tool.risk}</Badge>
                  {tool.description !== undefined && (
                    <p className="snippet" dir="auto">
                      {tool.description}
                    </p>
                  )}
                </li>
              ))}
            </ul>
          </>
        )}
      </div>
    </Dialog>
  );
}

import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, dateTime, plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { CopyButton } from '../../ui/copy-button.tsx';
import { AdminOnly, Badge, Button, Empty, Failure, Notice, Page, Skeleton } from '../../ui/parts.tsx';
import { DeliveryList } from './delivery-list.tsx';
import { TestDialog } from './test-dialog.tsx';

export type Webhooks = Result<'webhooks.list'>;
export type Webhook = Webhooks['webhooks'][number];

const signatureWords: Readonly<Record<Webhook['signature'], string>> = { hmac: 'HMAC', standard: 'Standard Webhooks', none: 'no signature' };
const replayWords: Readonly<Record<Webhook['replay'], string>> = {
  exact: 'each id with its body once',
  body: 'each body once',
  signed: 'each signed id once',
};

/** What other systems send, and what became of it. */
export function WebhooksPage() {
  const { admin } = useSession();
  return admin ? <Whole /> : <AdminOnly title="Webhooks" />;
}

function Whole() {
  const { client } = useSession();
  const listed = useLoad('webhooks', (signal) => client.call('webhooks.list', {}, { signal }));
  const [testing, setTesting] = useState<string>();
  const { data } = listed;
  return (
    <Page title="Webhooks" lead="What other systems send to agents. The mappings stand in config.yaml, with their secrets.">
      {listed.error !== undefined && <Failure error={listed.error} onRetry={listed.reload} />}
      {data === undefined && listed.loading && <Skeleton lines={5} />}
      {data?.enabled === false && <Notice tone="warn">Webhooks are off: nothing is taken.</Notice>}
      {data?.webhooks.length === 0 && (
        <Empty title="There are no webhooks">
          <p>Presets and mappings are set under `webhooks` in config.yaml.</p>
        </Empty>
      )}
      {data !== undefined && data.webhooks.length > 0 && (
        <>
          <ul className="rows" aria-label="Mappings">
            {data.webhooks.map((hook) => (
              <MappingRow key={hook.mapping} hook={hook} base={data.path} onTest={() => setTesting(hook.mapping)} />
            ))}
          </ul>
          <DeliveryList mappings={data.webhooks.map(({ mapping }) => mapping)} onChanged={listed.reload} />
        </>
      )}
      {testing !== undefined && <TestDialog mapping={testing} onClose={() => setTesting(undefined)} onRun={listed.reload} />}
    </Page>
  );
}

function MappingRow({ hook, base, onTest }: { readonly hook: Webhook; readonly base: string; readonly onTest: () => void }) {
  const { mapping, name, path, source, preset, action, agentId, signature, replay, builtIn, deliveries, lastDeliveryAt } = hook;
  const address = `${location.origin}${base}/${path ?? '…'}`;
  return (
    <li className="row">
      <div className="row-main">
        <span className="row-title mono">{mapping}</span>
        {name !== null && <p dir="auto">{name}</p>}
        <p className="mono hint webhook-address">{address}</p>
        <p className="hint">
          {action === 'agent' ? `begins a turn of ${agentId}` : `wakes ${agentId}`}
          {source !== null && ` · only of the source ${source}`}
          {` · takes ${replayWords[replay]}`}
        </p>
      </div>
      <div className="row-facts">
        <Badge tone={signature === 'none' ? 'warn' : 'good'}>{signatureWords[signature]}</Badge>
        <Badge>{preset === null ? (builtIn ? 'built in' : 'config.yaml') : `preset ${preset}`}</Badge>
        <span>{plural(deliveries, 'delivery', 'deliveries')}</span>
        {lastDeliveryAt !== null && <span title={dateTime(lastDeliveryAt)}>{`last ${ago(lastDeliveryAt)}`}</span>}
      </div>
      <div className="actions">
        {path !== null && <CopyButton text={address} label="Copy the address" />}
        <Button small label={`Test ${mapping}`} onClick={onTest}>
          Test
        </Button>
      </div>
    </li>
  );
}

import { t } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useEffect, useRef, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { ago, dateTime, plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { CopyButton } from '../../ui/copy-button.tsx';
import { AdminOnly, Badge, Button, Empty, Failure, Notice, Page, Skeleton } from '../../ui/parts.tsx';
import { ExecutionTabs } from '../../ui/execution-tabs.tsx';
import { DeliveryList } from './delivery-list.tsx';
import { TestDialog } from './test-dialog.tsx';

export type Webhooks = Result<'webhooks.list'>;
export type Webhook = Webhooks['webhooks'][number];

const signatureLabels: Readonly<Record<Webhook['signature'], string>> = { hmac: 'HMAC', standard: t('Standard Webhooks'), none: t('no signature') };
const replayLabels: Readonly<Record<Webhook['replay'], string>> = {
  exact: t('by id and body'),
  body: t('by body'),
  signed: t('by signed id'),
};

/** Lists webhook mappings and deliveries; `/webhooks/<id>` opens a delivery, or shows a mapping with its deliveries. */
export function WebhooksPage({ rest }: { readonly rest: string | undefined }) {
  const { admin } = useSession();
  return admin ? <Whole named={rest} /> : <AdminOnly title={t('Webhooks')} />;
}

function Whole({ named }: { readonly named: string | undefined }) {
  const { client } = useSession();
  const listed = useLoad(['webhooks.list'], (signal) => client.call('webhooks.list', {}, { signal }), { changedBy: ['webhook:'] });
  const [testing, setTesting] = useState<string>();
  const { data } = listed;
  const isMapping = data?.webhooks.some(({ mapping }) => mapping === named) === true;
  return (
    <Page wide help="schedule" title={t('Webhooks')} lead={t('Requests from other systems to agents. Mappings and secrets are set in config.yaml.')}>
      <ExecutionTabs current="/webhooks" />
      {listed.error !== undefined && <Failure error={listed.error} onRetry={listed.reload} />}
      {data === undefined && listed.loading && <Skeleton lines={5} />}
      {data?.enabled === false && <Notice tone="warn">{t('Webhooks are disabled: no requests are accepted.')}</Notice>}
      {data?.webhooks.length === 0 && (
        <Empty title={t('No webhooks')}>
          <p>{t('Set up presets and mappings under `webhooks` in config.yaml.')}</p>
        </Empty>
      )}
      {data !== undefined && data.webhooks.length > 0 && (
        <>
          <ul className="rows" aria-label={t('Mappings')}>
            {data.webhooks.map((hook) => (
              <MappingRow key={hook.mapping} hook={hook} base={data.path} isNamed={hook.mapping === named} onTest={() => setTesting(hook.mapping)} />
            ))}
          </ul>
          <DeliveryList
            key={isMapping ? named : ''}
            mappings={data.webhooks.map(({ mapping }) => mapping)}
            mapping={isMapping ? named : undefined}
            named={named}
            onReplayed={listed.reload}
          />
        </>
      )}
      {testing !== undefined && <TestDialog mapping={testing} onClose={() => setTesting(undefined)} onRun={listed.reload} />}
    </Page>
  );
}

function MappingRow({
  hook,
  base,
  isNamed,
  onTest,
}: {
  readonly hook: Webhook;
  readonly base: string;
  readonly isNamed: boolean;
  readonly onTest: () => void;
}) {
  const row = useRef<HTMLLIElement>(null);
  useEffect(() => {
    if (isNamed) row.current?.focus();
  }, [isNamed]);
  const { mapping, name, path, source, preset, action, agentId, signature, replay, builtIn, deliveries, lastDeliveryAt } = hook;
  const address = `${location.origin}${base}/${path ?? '…'}`;
  return (
    <li className="row" tabIndex={-1} ref={row}>
      <div className="row-main">
        <span className="row-title mono">{mapping}</span>
        {name !== null && <p dir="auto">{name}</p>}
        <p className="mono hint webhook-address">{address}</p>
        <p className="hint">
          {action === 'agent' ? t('starts a turn of {agentId}', { agentId }) : t('wakes {agentId}', { agentId })}
          {source !== null && ` ${t('· source {source} only', { source })}`}
          {` ${t('· deduplicates {replayLabels}', { replayLabels: replayLabels[replay] })}`}
        </p>
      </div>
      <div className="row-facts">
        <Badge tone={signature === 'none' ? 'warn' : 'good'}>{signatureLabels[signature]}</Badge>
        <Badge>{preset === null ? (builtIn ? t('built in') : 'config.yaml') : t('preset {preset}', { preset })}</Badge>
        <span>{plural(deliveries, 'delivery', 'deliveries')}</span>
        {lastDeliveryAt !== null && (
          <span title={dateTime(lastDeliveryAt)}>{t('last {lastDeliveryAt}', { lastDeliveryAt: ago(lastDeliveryAt) })}</span>
        )}
      </div>
      <div className="actions">
        {path !== null && <CopyButton text={address} label={t('Copy URL')} />}
        <Button small label={t('Test {mapping}', { mapping })} onClick={onTest}>
          {t('Test')}
        </Button>
      </div>
    </li>
  );
}

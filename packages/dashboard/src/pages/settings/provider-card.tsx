import { t, tx } from '../../language.ts';
import type { Result } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { clockTime, plural } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { Badge, Button, Failure, IconButton } from '../../ui/parts.tsx';
import { ProviderBadge, type ProviderState, ProviderTrouble, stateTones } from '../agents/provider-state.tsx';

type Test = Result<'providers.test'>;
type Key = ProviderState['keys'][number];

const sources: Readonly<Record<ProviderState['source'], string>> = {
  config: 'config.yaml',
  environment: t('found in the environment'),
  local_server: t('found on this machine'),
};
const keySources: Readonly<Record<Key['from'], string>> = { environment: 'environment', store: t('secret store'), file: t('written in config.yaml') };
const priceSources = { config: 'config.yaml', listed: t('the provider'), built_in: t('built in'), local: 'free' } as const;
/** Models rendered at once. */
const pageSize = 50;

/** A provider with its address, keys and models, and a test that makes one real call. */
export function ProviderCard({
  provider: { provider: name, ...provider },
  onChanged,
  onEdit,
  onRemove,
}: {
  readonly provider: ProviderState;
  readonly onChanged: () => void;
  readonly onEdit: () => void;
  readonly onRemove: () => void;
}) {
  const { client } = useSession();
  const { running, error, run } = useAction();
  const [test, setTest] = useState<Test>();
  const tryIt = (key?: string): void =>
    run(
      async () => {
        setTest(await client.call('providers.test', { provider: name, ...(key !== undefined && { key }) }));
        onChanged();
      },
      t('test {key}', { key: key ?? '' }),
    );
  return (
    <section className="provider" aria-label={t('Provider {name}', { name })}>
      <header>
        <h2>{name}</h2>
        <ProviderBadge state={{ provider: name, ...provider }} />
        <span className="hint">{provider.type}</span>
        <Badge>{sources[provider.source]}</Badge>
        <span className="grow" />
        <Button small disabled={running !== undefined} onClick={() => tryIt()} label={t('Test {name}', { name })}>
          {running === 'test ' ? t('Testing…') : t('Test')}
        </Button>
        <IconButton icon="edit" label={t('Change {name}', { name })} onClick={onEdit} />
        {provider.source === 'config' && <IconButton icon="trash" label={t('Remove {name}', { name })} onClick={onRemove} />}
      </header>
      <ProviderTrouble state={{ provider: name, ...provider }} onChanged={onChanged} />
      {error !== undefined && <Failure error={error} />}
      <div role="status">{test !== undefined && running === undefined && <TestOutcome test={test} />}</div>
      <dl className="facts">
        <dt>{t('Address')}</dt>
        <dd className="mono">{provider.baseUrl}</dd>
        <dt>{provider.keys.length > 1 ? t('Keys') : t('Key')}</dt>
        <dd>
          {provider.keys.length === 0
            ? t('none')
            : provider.keys.map((key) => (
                <div key={key.id} className="provider-key">
                  <span className="mono">{key.name ?? key.id}</span>
                  <span className="hint">{keySources[key.from]}</span>
                  {provider.keys.length > 1 && (
                    <>
                      <Badge tone={stateTones[key.state]}>
                        {key.untilMs === undefined ? key.state : t('{state} until {until}', { state: key.state, until: clockTime(key.untilMs) })}
                      </Badge>
                      <Button
                        small
                        look="quiet"
                        disabled={running !== undefined}
                        onClick={() => tryIt(key.id)}
                        label={t('Test {name}', { name: key.name ?? key.id })}
                      >
                        {running === `test ${key.id}` ? t('Testing…') : t('Test')}
                      </Button>
                      {key.state !== 'ok' && (
                        <Button
                          small
                          look="quiet"
                          disabled={running !== undefined}
                          label={t('Try now: {name}', { name: key.name ?? key.id })}
                          onClick={() => run(() => client.call('providers.retry', { provider: name, key: key.id }).then(onChanged), 'retry')}
                        >
                          {t('Try now')}
                        </Button>
                      )}
                    </>
                  )}
                  {key.cause !== undefined && provider.keys.length > 1 && (
                    <span className="hint" dir="auto">
                      {key.cause}
                    </span>
                  )}
                </div>
              ))}
        </dd>
      </dl>
      <Models name={name} models={provider.models} />
    </section>
  );
}

/** What a test found: a sentence, the next step, and what the provider said. */
export function TestOutcome({ test: { verdict, message, nextStep, cause, model, models } }: { readonly test: Test }) {
  const isGood = verdict === 'ok' || verdict === 'slow';
  return (
    <div className={`notice ${verdict === 'ok' ? 'good' : isGood ? 'warn' : 'bad'}`}>
      <div>
        <p>
          <strong>{message}.</strong>{' '}
          {isGood
            ? t('Called: {model}.{models}', {
                model,
                models: models.length > 0 ? ` ${t('It lists {models}.', { models: plural(models.length, 'model') })}` : '',
              })
            : nextStep === undefined
              ? ''
              : `${nextStep}.`}
        </p>
        {cause !== undefined && <p dir="auto">{cause}</p>}
      </div>
    </div>
  );
}

function Models({ name, models }: { readonly name: string; readonly models: ProviderState['models'] }) {
  const [limit, setLimit] = useState(pageSize);
  if (models.length === 0) return <p className="hint">{tx('No models are known; agents name them as {name}/model.', { name })}</p>;
  return (
    <details className="provider-models">
      <summary>{plural(models.length, 'model')}</summary>
      <div className="table-scroll" tabIndex={0} role="region" aria-label={t('Models of {name}', { name })}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t('Model')}</th>
              <th scope="col" data-align="right">
                {t('Input $/M')}
              </th>
              <th scope="col" data-align="right">
                {t('Output $/M')}
              </th>
              <th scope="col">{t('Price from')}</th>
            </tr>
          </thead>
          <tbody>
            {models.slice(0, limit).map(({ modelId, cost, costSource }) => (
              <tr key={modelId}>
                <td className="mono">{modelId}</td>
                <td data-align="right">{cost?.input ?? t('unknown')}</td>
                <td data-align="right">{cost?.output ?? t('unknown')}</td>
                <td>{costSource === null ? '' : priceSources[costSource]}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {models.length > limit && (
        <Button small onClick={() => setLimit(limit + pageSize)}>
          {t('Show more ({models})', { models: models.length - limit })}
        </Button>
      )}
    </details>
  );
}

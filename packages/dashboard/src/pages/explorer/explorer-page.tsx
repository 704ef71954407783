import { t } from '../../language.ts';
import type { OpenRpcDocument, OpenRpcMethod } from '@gatehouse/contract';
import { useMemo, useState } from 'react';
import { useSession } from '../../data/context.ts';
import { clockTime, plural } from '../../data/format.ts';
import type { PastCall } from '../../data/past-calls.ts';
import { useStore } from '../../data/store.ts';
import { useLoad } from '../../data/use-load.ts';
import { navigate } from '../../router.ts';
import { PageLink } from '../../ui/link.tsx';
import { Button, Empty, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { MethodView } from './method-view.tsx';
import { RouteExplorer } from './route-explorer.tsx';
import { createLookup } from '../../ui/schema/schema.ts';
import { SearchField } from '../../ui/search-field.tsx';

/** `/explorer[/<method>]` lists every method with a form to call it, `/explorer/http[/<operation>]` the HTTP routes. */
export function ExplorerPage({ rest }: { readonly rest: string | undefined }) {
  const [first, id] = rest?.split('/') ?? [];
  const isHttp = first === 'http';
  return (
    <Page title={t('API explorer')} lead={isHttp ? t('HTTP routes of this gateway.') : t('Calls run on this gateway with the token of this tab.')}>
      <Tabs
        label={t('Interfaces')}
        tabs={[
          { to: '/explorer', name: t('Methods'), current: !isHttp },
          { to: '/explorer/http', name: t('HTTP routes'), current: isHttp },
        ]}
      />
      {isHttp ? <RouteExplorer id={id} /> : <Methods name={first} />}
    </Page>
  );
}

function Methods({ name }: { readonly name: string | undefined }) {
  const { client } = useSession();
  const document = useLoad(['rpc.discover'], (signal) => client.call('rpc.discover', {}, { signal }));
  return (
    <>
      {document.error !== undefined && <Failure error={document.error} onRetry={document.reload} />}
      {document.data === undefined && document.loading && <Skeleton lines={8} />}
      {document.data !== undefined &&
        (isOpenRpc(document.data) ? (
          <Explorer document={document.data} name={name} />
        ) : (
          <Failure error={new Error('The method document has an unexpected format.')} />
        ))}
    </>
  );
}

function Explorer({ document, name }: { readonly document: OpenRpcDocument; readonly name: string | undefined }) {
  const [query, setQuery] = useState('');
  const [again, setAgain] = useState<PastCall>();
  const { pastCalls } = useSession();
  const past = useStore(pastCalls.calls);
  const lookup = useMemo(() => createLookup(document.components.schemas), [document]);
  const wanted = query.trim().toLocaleLowerCase();
  const found = document.methods.filter((one) => wanted === '' || `${one.name} ${one.summary}`.toLocaleLowerCase().includes(wanted));
  const method = document.methods.find((one) => one.name === name);

  const repeat = (call: PastCall): void => {
    setAgain(call);
    navigate(`/explorer/${call.method}`);
  };

  return (
    <div className="explorer">
      <aside className="explorer-list" aria-label={t('Methods')}>
        <SearchField label={t('Search methods')} hint={t('Search methods')} value={query} onChange={setQuery} />
        <p className="hint" role="status">
          {plural(found.length, 'method')}
        </p>
        <nav aria-label={t('Methods')}>
          {[...grouped(found)].map(([namespace, methods]) => (
            <div key={namespace} className="explorer-group">
              <p className="group-name">{namespace}</p>
              {methods.map((one) => (
                <PageLink
                  key={one.name}
                  to={`/explorer/${one.name}`}
                  className="explorer-item"
                  current={one.name === name}
                  onFollow={() => setAgain(undefined)}
                >
                  <span>{one.name.slice(namespace.length + 1)}</span>
                  <span className={`risk ${one['x-risk']}`}>{one['x-risk']}</span>
                </PageLink>
              ))}
            </div>
          ))}
        </nav>
      </aside>
      <div className="explorer-main">
        {method === undefined ? (
          <Empty title={name === undefined ? t('Select a method') : t('No method {name}', { name })}>
            <p>{t('Each method has a description, a form for its parameters, and examples.')}</p>
          </Empty>
        ) : (
          <MethodView
            key={`${method.name} ${again?.atMs ?? ''}`}
            method={method}
            lookup={lookup}
            initial={again?.method === method.name ? again.params : undefined}
          />
        )}
        {past.length > 0 && (
          <section className="past-calls" aria-label={t('Calls in this tab')}>
            <header>
              <h2>{t('Calls in this tab')}</h2>
              <Button small onClick={pastCalls.forget}>
                {t('Clear')}
              </Button>
            </header>
            <ul>
              {past.map((call) => (
                <li key={call.atMs}>
                  <button type="button" className="past-call" onClick={() => repeat(call)}>
                    <time>{clockTime(call.atMs)}</time>
                    <span className="mono">{call.method}</span>
                    <span className="mono hint cut">{JSON.stringify(call.params)}</span>
                    <span className={call.ok ? 'good-text' : 'bad-text'}>{call.ok ? t('ok') : t('failed')}</span>
                  </button>
                </li>
              ))}
            </ul>
          </section>
        )}
      </div>
    </div>
  );
}

/** Narrows the result of `rpc.discover`, which the contract types loosely. */
function isOpenRpc(value: object): value is OpenRpcDocument {
  return 'methods' in value && Array.isArray(value.methods) && 'components' in value;
}

function grouped(methods: readonly OpenRpcMethod[]): Map<string, OpenRpcMethod[]> {
  return Map.groupBy(methods, ({ name }) => name.slice(0, name.lastIndexOf('.')));
}

import { t } from '../../language.ts';
import type { OpenApiDocument } from '@gatehouse/contract';
import { useMemo, useState } from 'react';
import { plural } from '../../data/format.ts';
import { useLoad } from '../../data/use-load.ts';
import { PageLink } from '../../ui/link.tsx';
import { Empty, Failure, Skeleton } from '../../ui/parts.tsx';
import { createLookup } from '../../ui/schema/schema.ts';
import { SearchField } from '../../ui/search-field.tsx';
import { RouteView } from './route-view.tsx';
import { routesOf } from './routes.ts';

const families: Readonly<Record<string, string>> = {
  v1: t("OpenAI's API"),
  messages: t("Anthropic's API"),
  api: 'REST',
  rpc: t('JSON-RPC and MCP'),
};

/** Lists the HTTP routes of this gateway, from its OpenAPI document. */
export function RouteExplorer({ id }: { readonly id: string | undefined }) {
  const { data, error, loading, reload } = useLoad(['openapi'], loadDocument);
  if (error !== undefined) return <Failure error={error} onRetry={reload} />;
  if (data === undefined) return loading ? <Skeleton lines={8} /> : null;
  return <Routes document={data} id={id} />;
}

async function loadDocument(signal: AbortSignal): Promise<OpenApiDocument> {
  const response = await fetch('/openapi.json', { signal });
  if (!response.ok) throw new Error(`The list of routes could not be loaded (${response.status}).`);
  return (await response.json()) as OpenApiDocument;
}

function Routes({ document, id }: { readonly document: OpenApiDocument; readonly id: string | undefined }) {
  const [query, setQuery] = useState('');
  const routes = useMemo(() => routesOf(document, createLookup(document.components.schemas)), [document]);
  const wanted = query.trim().toLocaleLowerCase();
  const found = routes.filter(({ method, path, summary }) => `${method} ${path} ${summary}`.toLocaleLowerCase().includes(wanted));
  const route = routes.find((one) => one.id === id);
  return (
    <div className="explorer">
      <aside className="explorer-list" aria-label={t('Routes')}>
        <SearchField label={t('Search routes')} hint={t('Search routes')} value={query} onChange={setQuery} />
        <p className="hint" role="status">
          {plural(found.length, 'route')}
        </p>
        <nav aria-label={t('Routes')}>
          {Object.entries(families).map(([family, name]) => {
            const ofFamily = found.filter((one) => one.family === family);
            return (
              ofFamily.length > 0 && (
                <div key={family} className="explorer-group">
                  <p className="group-name">{name}</p>
                  {ofFamily.map((one) => (
                    <PageLink key={one.id} to={`/explorer/http/${one.id}`} className="explorer-item" current={one.id === id}>
                      <span>{one.path}</span>
                      <span className={one.method === 'DELETE' ? 'risk destructive' : 'risk'}>{one.method}</span>
                    </PageLink>
                  ))}
                </div>
              )
            );
          })}
        </nav>
      </aside>
      <div className="explorer-main">
        {route === undefined ? (
          <Empty title={id === undefined ? t('Select a route') : t('No route {id}', { id })}>
            <p>{t('Each route has its parameters, its answers, and a program that calls it in curl, JavaScript and Python.')}</p>
          </Empty>
        ) : (
          <RouteView key={route.id} route={route} />
        )}
      </div>
    </div>
  );
}

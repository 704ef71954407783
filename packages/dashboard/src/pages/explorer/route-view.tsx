import { t } from '../../language.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { Badge } from '../../ui/parts.tsx';
import type { ShownRoute } from './routes.ts';
import { SampleView } from './sample-view.tsx';

/** One HTTP route: what it takes and answers, and a program that calls it. */
export function RouteView({ route }: { readonly route: ShownRoute }) {
  const { method, path, scope, summary, parameters, answers, sample } = route;
  return (
    <article className="method">
      <header>
        <h2 className="mono">
          {method} {path}
        </h2>
        <Badge tone="neutral">{scope === 'none' ? t('no token') : t('scope {scope}', { scope })}</Badge>
      </header>
      <Markdown text={summary} />
      {sample === undefined ? (
        <p className="hint">{method === 'GET' ? t('A WebSocket.') : t('Called by other programs, with a signature of the body.')}</p>
      ) : (
        <SampleView
          request={{ ...sample, url: `${location.origin}${path.replaceAll(/\{(\w+)\}/g, (_found, name: string) => name.toUpperCase())}` }}
        />
      )}
      {parameters.length > 0 && (
        <div className="table-scroll" tabIndex={0} role="region" aria-label={t('Parameters')}>
          <table>
            <thead>
              <tr>
                <th scope="col">{t('Parameter')}</th>
                <th scope="col">{t('In')}</th>
                <th scope="col">{t('Type')}</th>
                <th scope="col">{t('Description')}</th>
              </tr>
            </thead>
            <tbody>
              {parameters.map(({ name, place, type, required, description }) => (
                <tr key={`${place} ${name}`}>
                  <td className="mono">
                    {name}
                    {required && <span title={t('required')}> *</span>}
                  </td>
                  <td>{place}</td>
                  <td className="mono">{type}</td>
                  <td>
                    <Markdown text={description} quiet />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <div className="table-scroll" tabIndex={0} role="region" aria-label={t('Answers')}>
        <table>
          <thead>
            <tr>
              <th scope="col">{t('Status')}</th>
              <th scope="col">{t('Answer')}</th>
            </tr>
          </thead>
          <tbody>
            {answers.map(({ status, description }) => (
              <tr key={status}>
                <td className="mono">{status}</td>
                <td>
                  <Markdown text={description} quiet />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </article>
  );
}

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
        <Badge tone="neutral">{scope === 'none' ? 'no token' : `scope ${scope}`}</Badge>
      </header>
      <Markdown text={summary} />
      {sample === undefined ? (
        <p className="hint">{method === 'GET' ? 'A WebSocket.' : 'Called by other programs, with a signature of the body.'}</p>
      ) : (
        <SampleView
          request={{ ...sample, url: `${location.origin}${path.replaceAll(/\{(\w+)\}/g, (_found, name: string) => name.toUpperCase())}` }}
        />
      )}
      {parameters.length > 0 && (
        <div className="table-scroll" tabIndex={0} role="region" aria-label="Parameters">
          <table>
            <thead>
              <tr>
                <th scope="col">Parameter</th>
                <th scope="col">In</th>
                <th scope="col">Type</th>
                <th scope="col">Description</th>
              </tr>
            </thead>
            <tbody>
              {parameters.map(({ name, place, type, required, description }) => (
                <tr key={`${place} ${name}`}>
                  <td className="mono">
                    {name}
                    {required && <span title="required"> *</span>}
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
      <div className="table-scroll" tabIndex={0} role="region" aria-label="Answers">
        <table>
          <thead>
            <tr>
              <th scope="col">Status</th>
              <th scope="col">Answer</th>
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

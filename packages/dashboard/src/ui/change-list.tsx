import { t } from '../language.ts';
import { revealedJson } from './revealed.ts';
import type { ConfigChange } from '../data/config-changes.ts';

/** Lists the keys that would change, with their values before and after. */
export function ChangeList({ changes }: { readonly changes: readonly ConfigChange[] }) {
  if (changes.length === 0) return <p role="status">{t('No changes.')}</p>;
  return (
    <div className="table-scroll" tabIndex={0} role="region" aria-label={t('Changes')}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t('Key')}</th>
            <th scope="col">{t('Before')}</th>
            <th scope="col">{t('After')}</th>
          </tr>
        </thead>
        <tbody>
          {changes.map(({ path, before, after }) => (
            <tr key={path}>
              <th scope="row" className="mono">
                {path}
              </th>
              <td>
                <Value value={before} />
              </td>
              <td>
                <Value value={after} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Value({ value }: { readonly value: unknown }) {
  return value === undefined ? <span className="hint">{t('not set')}</span> : <code className="config-value">{revealedJson(value)}</code>;
}

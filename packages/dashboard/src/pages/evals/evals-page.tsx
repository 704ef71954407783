import { t, tx } from '../../language.ts';
import { useSession } from '../../data/context.ts';
import { ago, count, dateTime, money } from '../../data/format.ts';
import { useAction } from '../../data/use-action.ts';
import { useLoad } from '../../data/use-load.ts';
import { PageLink } from '../../ui/link.tsx';
import { AdminOnly, Badge, Button, Empty, Failure, Page, Skeleton } from '../../ui/parts.tsx';
import { saveBlob } from '../../ui/save-json.ts';
import { EvalPage } from './eval-page.tsx';
import { stateLabels, stateTones, variantName } from './labels.ts';

const listed = 50;

/** Evaluations, or the report of one. */
export function EvalsPage({ rest }: { readonly rest: string | undefined }) {
  const { admin } = useSession();
  if (!admin) return <AdminOnly title={t('Evaluations')} />;
  return rest === undefined ? <Evaluations /> : <EvalPage evalId={rest} />;
}

function Evaluations() {
  const { client } = useSession();
  const found = useLoad(['eval.list'], (signal) => client.call('eval.list', { limit: listed }, { signal }));
  const { busy, error, run } = useAction();
  const { data } = found;
  const saveMarked = (): void =>
    run(async () => saveBlob('cases.yaml', new Blob([(await client.call('eval.cases', {})).yaml], { type: 'application/yaml' })));
  return (
    <Page
      title={t('Evaluations')}
      lead={<>{tx('Test cases asked of agents and models, side by side. {code} starts one.', { code: <code>gatehouse eval FILE</code> })}</>}
      actions={
        <>
          <Button icon="download" disabled={busy} onClick={saveMarked}>
            {t('Test cases of marked answers')}
          </Button>
          <Button icon="retry" onClick={found.reload} disabled={found.loading}>
            {t('Refresh')}
          </Button>
        </>
      }
    >
      {error !== undefined && <Failure error={error} onRetry={saveMarked} />}
      {found.error !== undefined && <Failure error={found.error} onRetry={found.reload} />}
      {data === undefined && found.loading && <Skeleton lines={6} />}
      {data?.runs.length === 0 && <Empty title={t('No evaluations yet')} />}
      {data !== undefined && data.runs.length > 0 && (
        <div className="table-scroll" tabIndex={0} role="region" aria-label={t('Evaluations, table')}>
          <table>
            <thead>
              <tr>
                <th scope="col">{t('Evaluation')}</th>
                <th scope="col">{t('State')}</th>
                <th scope="col">{t('Passed')}</th>
                <th scope="col" data-align="right">
                  {t('Cost')}
                </th>
                <th scope="col">{t('Started')}</th>
              </tr>
            </thead>
            <tbody>
              {data.runs.map((one) => (
                <tr key={one.evalId}>
                  <th scope="row">
                    <PageLink to={`/evals/${one.evalId}`} dir="auto">
                      {one.name ?? one.evalId}
                    </PageLink>
                  </th>
                  <td>
                    <Badge tone={stateTones[one.state]}>{stateLabels[one.state]}</Badge>
                  </td>
                  <td>
                    {one.variants
                      .map((variant) =>
                        t('{variant}: {passed} of {cases}', {
                          variant: variantName(variant),
                          passed: count(variant.passed),
                          cases: count(one.cases),
                        }),
                      )
                      .join(', ')}
                  </td>
                  <td data-align="right">{money(one.costUsd)}</td>
                  <td>
                    <time dateTime={new Date(one.createdAt).toISOString()} title={dateTime(one.createdAt)}>
                      {ago(one.createdAt)}
                    </time>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Page>
  );
}

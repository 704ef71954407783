import { t, tx } from '../../language.ts';
import { GatehouseError } from '@gatehouse/client';
import type { OpenRpcMethod } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { useAction } from '../../data/use-action.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { CopyButton } from '../../ui/copy-button.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { JsonTree } from '../../ui/json-tree.tsx';
import { Badge, Button, Failure, type Tone } from '../../ui/parts.tsx';
import { SampleView } from './sample-view.tsx';
import { ParamsFields, useParamsDraft } from './params-fields.tsx';
import type { Lookup, Schema } from '../../ui/schema/schema.ts';

type Outcome =
  | { readonly ok: true; readonly result: unknown; readonly ms: number }
  | { readonly ok: false; readonly error: unknown; readonly ms: number };

const riskTones: Readonly<Record<string, Tone>> = { read: 'good', mutate: 'warn', destructive: 'bad' };

export function MethodView({
  method,
  lookup,
  initial,
}: {
  readonly method: OpenRpcMethod;
  readonly lookup: Lookup;
  readonly initial: Schema | undefined;
}) {
  const { client, admin, pastCalls } = useSession();
  const draft = useParamsDraft(initial);
  const [outcome, setOutcome] = useState<Outcome>();
  const { busy, run } = useAction();
  const [asking, setAsking] = useState(false);
  const risk = method['x-risk'];

  async function call(): Promise<void> {
    const params = draft.parse();
    if (params === undefined) return;
    const started = performance.now();
    const ended = (part: { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly error: unknown }): void => {
      setOutcome({ ...part, ms: Math.round(performance.now() - started) });
      pastCalls.remember({ method: method.name, params, atMs: Date.now(), ok: part.ok });
    };
    try {
      ended({ ok: true, result: await client.callByName(method.name, params) });
    } catch (error) {
      ended({ ok: false, error });
    }
  }

  return (
    <article className="method">
      <header>
        <h2 className="mono">{method.name}</h2>
        <Badge tone={riskTones[risk] ?? 'neutral'}>{risk}</Badge>
        <Badge tone={method['x-scope'] === 'admin' && !admin ? 'warn' : 'neutral'}>{tx('scope {method}', { method: method['x-scope'] })}</Badge>
      </header>
      <Markdown text={method.summary} />
      {method.description !== undefined && <Markdown text={method.description} quiet />}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (!draft.isValid()) return;
          if (risk === 'destructive') setAsking(true);
          else run(call);
        }}
      >
        <ParamsFields method={method} lookup={lookup} draft={draft} />
        <div className="method-tools">
          <Button submit look="primary" icon="send" disabled={busy}>
            {busy ? t('Calling…') : t('Call')}
          </Button>
        </div>
      </form>
      <SampleView
        request={{
          method: 'POST',
          url: `${location.origin}/rpc`,
          body: { jsonrpc: '2.0', id: 1, method: method.name, params: draft.parse() ?? {} },
        }}
      />
      {outcome !== undefined && <OutcomeView outcome={outcome} />}
      {asking && (
        <Confirm title={t('Call {name}?', { name: method.name })} action={t('Call it')} onClose={() => setAsking(false)} run={call}>
          <p>{t('This call is destructive or grants access, and will run against this live gateway.')}</p>
        </Confirm>
      )}
    </article>
  );
}

function OutcomeView({ outcome }: { readonly outcome: Outcome }) {
  const text = outcome.ok ? JSON.stringify(outcome.result, null, 2) : undefined;
  return (
    <section className="outcome" aria-label={t('Answer')} aria-live="polite">
      <header>
        <h3>{outcome.ok ? t('Result') : t('Error')}</h3>
        <span className="hint">{tx('{ms} ms', { ms: outcome.ms })}</span>
        <span className="grow" />
        {text !== undefined && <CopyButton text={text} label={t('Copy')} />}
      </header>
      {outcome.ok ? (
        <div className="outcome-body">
          <JsonTree value={outcome.result} />
        </div>
      ) : (
        <>
          <Failure error={outcome.error} />
          {outcome.error instanceof GatehouseError && (
            <p className="hint mono">
              {[
                t('code {code}', { code: outcome.error.code }),
                outcome.error.rpcCode === undefined ? undefined : t('number {rpcCode}', { rpcCode: outcome.error.rpcCode }),
              ]
                .filter(Boolean)
                .join(', ')}
            </p>
          )}
        </>
      )}
    </section>
  );
}

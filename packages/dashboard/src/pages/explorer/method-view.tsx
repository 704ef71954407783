import { GatehouseError } from '@gatehouse/client';
import type { OpenRpcMethod } from '@gatehouse/contract';
import { useState } from 'react';
import { useSession } from '../../data/context.ts';
import { Markdown } from '../../markdown/markdown.tsx';
import { CopyButton } from '../../ui/copy-button.tsx';
import { Confirm } from '../../ui/dialog.tsx';
import { JsonTree } from '../../ui/json-tree.tsx';
import { Badge, Button, Failure, Field, type Tone } from '../../ui/parts.tsx';
import { curlLine } from './curl.ts';
import { SchemaFields } from './schema-field.tsx';
import { isSchema, type Lookup, type Schema } from './schema.ts';

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
  const [params, setParams] = useState<Schema>(initial ?? {});
  const [raw, setRaw] = useState<string>();
  const [outcome, setOutcome] = useState<Outcome>();
  const [busy, setBusy] = useState(false);
  const [asking, setAsking] = useState(false);
  const [problem, setProblem] = useState<string>();
  // Remounts the form when its values are set from outside.
  const [round, setRound] = useState(0);
  const risk = method['x-risk'];

  /** Returns the parameters to send; undefined while the text is not an object. */
  function given(): Schema | undefined {
    if (raw === undefined) return params;
    try {
      const value: unknown = raw.trim() === '' ? {} : JSON.parse(raw);
      return isSchema(value) ? value : undefined;
    } catch {
      return undefined;
    }
  }

  async function call(): Promise<void> {
    const sent = given();
    if (sent === undefined) return;
    setBusy(true);
    const started = performance.now();
    const ended = (part: { readonly ok: true; readonly result: unknown } | { readonly ok: false; readonly error: unknown }): void => {
      setOutcome({ ...part, ms: Math.round(performance.now() - started) });
      setBusy(false);
      pastCalls.remember({ method: method.name, params: sent, atMs: Date.now(), ok: part.ok });
    };
    try {
      ended({ ok: true, result: await client.callByName(method.name, sent) });
    } catch (error) {
      ended({ ok: false, error });
    }
  }

  function submit(): void {
    if (given() === undefined) return setProblem('The parameters must be a JSON object.');
    setProblem(undefined);
    if (risk === 'destructive') setAsking(true);
    else void call();
  }

  function switchRaw(): void {
    if (raw === undefined) return setRaw(JSON.stringify(params, null, 2));
    const value = given();
    if (value === undefined) return setProblem('The parameters must be a JSON object.');
    setProblem(undefined);
    setParams(value);
    setRaw(undefined);
    setRound(round + 1);
  }

  const fields = method.params.map(({ name, schema, required = false }) => ({ name, schema, required }));
  return (
    <article className="method">
      <header>
        <h2 className="mono">{method.name}</h2>
        <Badge tone={riskTones[risk] ?? 'neutral'}>{risk}</Badge>
        <Badge tone={method['x-scope'] === 'admin' && !admin ? 'warn' : 'neutral'}>scope {method['x-scope']}</Badge>
      </header>
      <Markdown text={method.summary} />
      {method.description !== undefined && <Markdown text={method.description} quiet />}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <div className="method-tools">
          <h3>Parameters</h3>
          <span className="grow" />
          {method.examples.map((example) => (
            <Button
              key={example.name}
              small
              onClick={() => {
                const values = Object.fromEntries(example.params.map(({ name, value }) => [name, value]));
                setParams(values);
                if (raw !== undefined) setRaw(JSON.stringify(values, null, 2));
                setRound(round + 1);
              }}
            >
              Use example: {example.name}
            </Button>
          ))}
          <Button small onClick={switchRaw}>
            {raw === undefined ? 'As JSON' : 'As a form'}
          </Button>
        </div>
        {raw !== undefined ? (
          <Field label="Parameters as JSON">
            {(id) => <textarea id={id} className="mono" rows={8} spellCheck={false} value={raw} onChange={(event) => setRaw(event.target.value)} />}
          </Field>
        ) : fields.length === 0 ? (
          <p className="hint">No parameters.</p>
        ) : (
          <SchemaFields key={round} fields={fields} lookup={lookup} value={params} onChange={(next) => setParams(next ?? {})} />
        )}
        {problem !== undefined && <Failure error={new Error(problem)} />}
        <div className="method-tools">
          <Button submit look="primary" icon="send" disabled={busy}>
            {busy ? 'Calling…' : 'Call'}
          </Button>
          <CopyButton text={curlLine(location.origin, method.name, given() ?? {})} label="Copy as curl" wide />
        </div>
      </form>
      {outcome !== undefined && <OutcomeView outcome={outcome} />}
      {asking && (
        <Confirm title={`Call ${method.name}?`} action="Call it" onClose={() => setAsking(false)} run={call}>
          <p>This call is destructive or grants access, and will run against this live gateway.</p>
        </Confirm>
      )}
    </article>
  );
}

function OutcomeView({ outcome }: { readonly outcome: Outcome }) {
  const text = outcome.ok ? JSON.stringify(outcome.result, null, 2) : undefined;
  return (
    <section className="outcome" aria-label="Answer" aria-live="polite">
      <header>
        <h3>{outcome.ok ? 'Result' : 'Error'}</h3>
        <span className="hint">{outcome.ms} ms</span>
        <span className="grow" />
        {text !== undefined && <CopyButton text={text} label="Copy" />}
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
              {[`code ${outcome.error.code}`, outcome.error.rpcCode === undefined ? undefined : `number ${outcome.error.rpcCode}`]
                .filter(Boolean)
                .join(', ')}
            </p>
          )}
        </>
      )}
    </section>
  );
}

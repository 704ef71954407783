import { t, tx } from '../../language.ts';
import type { OpenRpcMethod } from '@gatehouse/contract';
import { useState } from 'react';
import { Button, Failure, Field } from '../../ui/parts.tsx';
import { SchemaFields } from './schema-field.tsx';
import { isSchema, type Lookup, type Schema } from '../../ui/schema/schema.ts';

/** The parameters of a call that is being written, as a form or as JSON. */
export interface ParamsDraft {
  readonly params: Schema;
  /** The text while the parameters are edited as JSON. */
  readonly raw: string | undefined;
  readonly problem: string | undefined;
  /** Changes when values are set from outside, which remounts the form. */
  readonly round: number;
  readonly setParams: (params: Schema) => void;
  readonly setRaw: (text: string) => void;
  readonly fill: (params: Schema) => void;
  readonly switchView: () => void;
  /** Returns the parameters to send; undefined while the text is not an object. */
  readonly parse: () => Schema | undefined;
  /** Checks the text and shows what is wrong. */
  readonly isValid: () => boolean;
}

export function useParamsDraft(initial: Schema | undefined): ParamsDraft {
  const [params, setParams] = useState<Schema>(initial ?? {});
  const [raw, setRaw] = useState<string>();
  const [problem, setProblem] = useState<string>();
  const [round, setRound] = useState(0);

  function parse(): Schema | undefined {
    if (raw === undefined) return params;
    try {
      const value: unknown = raw.trim() === '' ? {} : JSON.parse(raw);
      return isSchema(value) ? value : undefined;
    } catch {
      return undefined;
    }
  }

  function isValid(): boolean {
    const isObject = parse() !== undefined;
    setProblem(isObject ? undefined : t('The parameters must be a JSON object.'));
    return isObject;
  }

  function switchView(): void {
    if (raw === undefined) return setRaw(JSON.stringify(params, null, 2));
    if (!isValid()) return;
    setParams(parse() ?? {});
    setRaw(undefined);
    setRound(round + 1);
  }

  function fill(values: Schema): void {
    setParams(values);
    if (raw !== undefined) setRaw(JSON.stringify(values, null, 2));
    setRound(round + 1);
  }

  return { params, raw, problem, round, setParams, setRaw, fill, switchView, parse, isValid };
}

/** Edits the parameters of a method. */
export function ParamsFields({ method, lookup, draft }: { readonly method: OpenRpcMethod; readonly lookup: Lookup; readonly draft: ParamsDraft }) {
  const fields = method.params.map(({ name, schema, required = false }) => ({ name, schema, required }));
  return (
    <>
      <div className="method-tools">
        <h3>{t('Parameters')}</h3>
        <span className="grow" />
        {method.examples.map((example) => (
          <Button key={example.name} small onClick={() => draft.fill(Object.fromEntries(example.params.map(({ name, value }) => [name, value])))}>
            {tx('Use example: {name}', { name: example.name })}
          </Button>
        ))}
        <Button small onClick={draft.switchView}>
          {draft.raw === undefined ? t('As JSON') : t('As a form')}
        </Button>
      </div>
      {draft.raw !== undefined ? (
        <Field label={t('Parameters as JSON')}>
          {(id) => (
            <textarea id={id} className="mono" rows={8} spellCheck={false} value={draft.raw} onChange={(event) => draft.setRaw(event.target.value)} />
          )}
        </Field>
      ) : fields.length === 0 ? (
        <p className="hint">{t('No parameters.')}</p>
      ) : (
        <SchemaFields key={draft.round} fields={fields} lookup={lookup} value={draft.params} onChange={(next) => draft.setParams(next ?? {})} />
      )}
      {draft.problem !== undefined && <Failure error={new Error(draft.problem)} />}
    </>
  );
}

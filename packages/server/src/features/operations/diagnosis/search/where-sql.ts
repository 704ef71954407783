import type { Expression, ExpressionBuilder, sql as sqlTag, SqlBool } from 'kysely';
import type { Dialect } from '../../../../kernel/db/operation.ts';
import type { Tables } from '../../../../kernel/db/tables.ts';
import type { Condition, NumberField, TextField, TextOperator } from './where.ts';

type Where = ExpressionBuilder<Tables, 'traceRecord'>;
type Sql = typeof sqlTag;

const textColumns = {
  id: 'id',
  kind: 'kind',
  outcome: 'outcome',
  reason: 'end_reason',
  error: 'error_kind',
  model: 'model',
  agent: 'agent_id',
  origin: 'origin',
  session: 'session_key',
  conversation: 'conversation_ref',
  channel: 'channel_type',
  chat: 'channel_id',
  trace: 'trace_id',
  root: 'root_run_id',
  message: 'message_id',
  principal: 'principal_id',
} as const satisfies Record<Exclude<TextField, 'tool'>, string>;

const numberColumns: Readonly<Record<NumberField, string>> = {
  cost: 'cost_nano',
  tokens: '(input_tokens + output_tokens)',
  input: 'input_tokens',
  output: 'output_tokens',
  cached: 'cache_read_tokens',
  duration: '(ended_at_ms - started_at_ms)',
  calls: 'model_calls',
  tools: 'tool_calls',
  toolErrors: 'tool_errors',
};

/** Compiles a condition. Values are parameters; names of columns come from the closed lists here. */
export function whereSql(where: Where, sql: Sql, dialect: Dialect, condition: Condition): Expression<SqlBool> {
  switch (condition.kind) {
    case 'and':
    case 'or':
      return where[condition.kind](condition.parts.map((part) => whereSql(where, sql, dialect, part)));
    case 'not':
      return where.not(whereSql(where, sql, dialect, condition.part));
    case 'error':
      return sql<SqlBool>`(outcome = 'failed' or error_kind is not null)`;
    case 'number': {
      const value = condition.field === 'cost' ? Math.round(condition.value * 1e9) : condition.value;
      return sql<SqlBool>`coalesce(${sql.raw(numberColumns[condition.field])}, 0) ${sql.raw(condition.operator)} ${sql.lit(value)}`;
    }
    case 'text': {
      const { field, operator, values } = condition;
      if (field === 'tool') return toolSql(sql, dialect, operator, values);
      if (field === 'message' && operator === '=') return ofMessage(sql, values[0] ?? '');
      return compared(sql, sql.raw(textColumns[field]), operator, values);
    }
  }
}

/** Finds a message by the index of ids: it has the id of its turn, whose parts have that id with a suffix. Never unknown. */
export function ofMessage(sql: Sql, messageId: string): Expression<SqlBool> {
  const turnId = messageId.replace(/^ms_/, '');
  return sql<SqlBool>`(id >= ${turnId} and id < ${`${turnId}/`} and message_id = ${messageId} and message_id is not null)`;
}

/** Never unknown, which `not` would not turn around, and in a form for which the engines use an index. */
function compared(sql: Sql, column: Expression<unknown>, operator: TextOperator, values: readonly string[]): Expression<SqlBool> {
  const [first = ''] = values;
  if (operator === '!=') return sql<SqlBool>`(${column} <> ${first} or ${column} is null)`;
  const matches =
    operator === 'in'
      ? sql`${column} in (${sql.join(values)})`
      : operator === '~'
        ? sql`substr(${column}, 1, ${sql.lit(Array.from(first).length)}) = ${first}`
        : sql`${column} = ${first}`;
  return sql<SqlBool>`(${matches} and ${column} is not null)`;
}

/** Whether one of the tool steps has this name; `!=`: none has. Records without tool calls are not opened. */
function toolSql(sql: Sql, dialect: Dialect, operator: TextOperator, values: readonly string[]): Expression<SqlBool> {
  const isSqlite = dialect === 'sqlite';
  const kind = isSqlite ? sql`json_extract(step.value, '$.kind')` : sql`(step.value ->> 'kind')`;
  const name = isSqlite ? sql`json_extract(step.value, '$.name')` : sql`(step.value ->> 'name')`;
  const steps = isSqlite ? sql`json_each(detail_json, '$.steps') as step` : sql`json_array_elements(detail_json::json -> 'steps') as step(value)`;
  const matches = compared(sql, name, operator === '!=' ? '=' : operator, values);
  const mentioned = sql.join(
    values.map((value) => {
      // As the recorder writes it; cheaper than to parse the steps of every record.
      const text = `"name":${operator === '~' ? JSON.stringify(value).slice(0, -1) : JSON.stringify(value)}`;
      return isSqlite ? sql`instr(detail_json, ${text}) > 0` : sql`strpos(detail_json, ${text}) > 0`;
    }),
    sql` or `,
  );
  const found = sql<SqlBool>`(tool_calls > 0 and (${mentioned}) and exists (select 1 from ${steps} where ${kind} = 'tool' and ${matches}))`;
  return operator === '!=' ? sql<SqlBool>`(not ${found})` : found;
}

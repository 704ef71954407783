/** Returns the call as a shell command, without the token: copied commands get pasted into chats and tickets. */
export function curlLine(origin: string, method: string, params: object): string {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
  return `curl ${origin}/rpc -H "authorization: Bearer $GATEHOUSE_TOKEN" -H 'content-type: application/json' -d '${body.replaceAll("'", String.raw`'\''`)}'`;
}

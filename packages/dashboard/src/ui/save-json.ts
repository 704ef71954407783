/** Hands a value to the browser as a file to keep. */
export function saveJson(fileName: string, value: unknown): void {
  saveBlob(fileName, new Blob([JSON.stringify(value, null, 2)], { type: 'application/json' }));
}

/** The same with bytes as they are. */
export function saveBlob(fileName: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = document.createElement('a');
  link.href = address;
  link.download = fileName;
  link.click();
  // The download has begun by then; kept longer, the whole text stays in memory.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** The window that contains us: TensorBoard's, if our iframe has its origin; else our own (opened alone). */

function sameOriginParent(): Window | null {
  try {
    // Reading the document throws if the parent has another origin.
    return window.parent !== window && window.parent.document ? window.parent : null;
  } catch {
    return null;
  }
}

/** TensorBoard's window when embedded, our own when opened alone. */
export function hostWindow(): Window {
  return sameOriginParent() ?? window;
}

export function isEmbedded(): boolean {
  return sameOriginParent() !== null;
}

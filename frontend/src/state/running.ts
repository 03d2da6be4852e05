/** After a reload, finds the running capture and the monitor that this tab started. */
import { followCapture, loadCaptureInfo } from './capture';
import { followMonitor, leaveMonitor, ownMonitor } from './monitor';

export async function findRunning(): Promise<void> {
  window.addEventListener('pagehide', leaveMonitor);
  const monitor = ownMonitor();
  if (monitor) void followMonitor(monitor);
  const info = await loadCaptureInfo();
  if (info?.running) void followCapture(info.running);
}

// Kafka's own Rate and TokenBucket, driven by lines of standard input:
//   windows COUNT SIZE_S BOUND   begin again with empty histories
//   at MS AMOUNT                 record AMOUNT at MS, and print the rate, its window in ms, the tokens
import java.util.Scanner;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Quota;
import org.apache.kafka.common.metrics.stats.Rate;
import org.apache.kafka.common.metrics.stats.TokenBucket;

public class QuotaRates {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        MetricConfig config = null;
        Rate rate = null;
        TokenBucket bucket = null;
        while (lines.hasNext()) {
            if (lines.next().equals("windows")) {
                config = new MetricConfig().samples(lines.nextInt())
                    .timeWindow(lines.nextInt(), TimeUnit.SECONDS)
                    .quota(new Quota(lines.nextDouble(), true));
                rate = new Rate();
                bucket = new TokenBucket();
                continue;
            }
            long now = lines.nextLong();
            double amount = lines.nextDouble();
            rate.record(config, amount, now);
            bucket.record(config, amount, now);
            System.out.println(rate.measure(config, now) + " " + rate.windowSize(config, now) + " "
                + bucket.measure(config, now));
        }
    }
}

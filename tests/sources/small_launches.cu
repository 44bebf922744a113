// Kernels of 0.2 to 3 us, for what a launch itself takes. Timed on an H200: tests/records/h200_small_launches.json.
#define K extern "C" __global__ void
K empty(){}
K store(int *p){ p[blockIdx.x*blockDim.x+threadIdx.x]=7; }
K load1(int *p,const int *q){ int i=blockIdx.x*blockDim.x+threadIdx.x; p[i]=q[i]+1; }
K load2(int *p,const int *q){ int i=blockIdx.x*blockDim.x+threadIdx.x; int a=q[i]; p[i]=q[i+(a&1024)]+1; }
K load4(int *p,const int *q){ int i=blockIdx.x*blockDim.x+threadIdx.x; int a=q[i]; a=q[i+(a&1024)]; a=q[i+(a&1024)];p[i]=q[i+(a&1024)]+1; }
K load8(int *p,const int *q){ int i=blockIdx.x*blockDim.x+threadIdx.x; int a=0; 
#pragma unroll
 for(int j=0;j<8;j++) a=q[i+(a&1024)]; p[i]=a+1; }
K wide(int4 *p,const int4 *q){ int i=blockIdx.x*blockDim.x+threadIdx.x; p[i]=q[i]; }
K smem(int *p,const int *q){ extern __shared__ int s[]; int i=blockIdx.x*blockDim.x+threadIdx.x; s[threadIdx.x]=q[i]; __syncthreads(); p[i]=s[threadIdx.x^1]; }
K barriers(int *p){ int i=blockIdx.x*blockDim.x+threadIdx.x; 
#pragma unroll
 for(int j=0;j<32;j++) __syncthreads(); p[i]=1; }
K __launch_bounds__(256,1) big(float *p,const float *q){ int i=blockIdx.x*blockDim.x+threadIdx.x; float a[64];
#pragma unroll
 for(int j=0;j<64;j++) a[j]=q[(i+j*4096)&262143]; float s=0;
#pragma unroll
 for(int j=0;j<64;j++) s+=a[j]*a[(j*7)&63]; p[i]=s; }
